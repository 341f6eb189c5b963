//! A program asks whether it may; a person, or whoever stands in for one, answers.
//!
//! Invariants: no answer is a no; a no never becomes a yes, nor "once" an "always"; after a cancel every open
//! question is answered `cancelled`, as the protocol wants it.

use std::sync::Arc;

use agent_client_protocol::v1::Responder;
use agent_client_protocol::v1::schema::{
    PermissionOption, PermissionOptionId, PermissionOptionKind, RequestPermissionOutcome, RequestPermissionResponse,
    SelectedPermissionOutcome,
};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::super::program::{Allowed, Ask, Deed};

/// Questions that may wait at once; what comes beyond is refused.
const MAX_OPEN: usize = 16;
/// Answers to choose from that are looked at.
const MAX_OPTIONS: usize = 32;

/// What a program wants, in words, and as our rules name it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Described {
    pub tool: String,
    pub what: String,
    pub deeds: Vec<Deed>,
}

/// Where questions are taken.
#[derive(Clone)]
pub(super) struct Desk {
    asks: mpsc::Sender<Ask>,
    cancel: CancellationToken,
    open: Arc<Semaphore>,
}

impl Desk {
    pub(super) fn new(asks: mpsc::Sender<Ask>, cancel: CancellationToken) -> Self {
        Self { asks, cancel, open: Arc::new(Semaphore::new(MAX_OPEN)) }
    }

    /// Asks and answers. `None`: the question is about no session of ours.
    pub(super) async fn attend(
        self,
        described: Option<Described>,
        options: Vec<PermissionOption>,
        responder: Responder<RequestPermissionResponse>,
    ) -> Result<(), agent_client_protocol::Error> {
        let outcome = tokio::select! {
            biased;
            () = self.cancel.cancelled() => RequestPermissionOutcome::Cancelled,
            allowed = self.ask(described) => choose(allowed, &options),
        };
        // Who asked may be gone; that is found out elsewhere.
        let _ = responder.respond(RequestPermissionResponse::new(outcome));
        Ok(())
    }

    async fn ask(&self, described: Option<Described>) -> Allowed {
        let (Some(described), Ok(_place)) = (described, self.open.try_acquire()) else { return Allowed::No };
        let (reply, allowed) = oneshot::channel();
        let ask = Ask { tool: described.tool, what: described.what, deeds: described.deeds, reply };
        if self.asks.send(ask).await.is_err() {
            return Allowed::No;
        }
        allowed.await.unwrap_or(Allowed::No)
    }
}

/// The program's own option for an answer: by its kind, never by its name or place.
fn choose(allowed: Allowed, options: &[PermissionOption]) -> RequestPermissionOutcome {
    use PermissionOptionKind::{AllowAlways, AllowOnce, RejectAlways, RejectOnce};
    let find = |kinds: &[PermissionOptionKind]| -> Option<PermissionOptionId> {
        let of_kind = |kind| options.iter().take(MAX_OPTIONS).find(|option| option.kind == kind);
        kinds.iter().find_map(|kind| of_kind(*kind)).map(|option| option.option_id.clone())
    };
    let wanted = match allowed {
        Allowed::Once => find(&[AllowOnce]),
        // Less than was said is no harm; it will ask again.
        Allowed::Always => find(&[AllowAlways, AllowOnce]),
        Allowed::No => None,
    };
    match wanted.or_else(|| find(&[RejectOnce, RejectAlways])) {
        Some(id) => RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(id)),
        None => RequestPermissionOutcome::Cancelled,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use PermissionOptionKind::{AllowAlways, AllowOnce, RejectAlways, RejectOnce};

    fn chosen(allowed: Allowed, kinds: &[PermissionOptionKind]) -> Option<PermissionOptionKind> {
        let options: Vec<_> =
            kinds.iter().enumerate().map(|(at, kind)| PermissionOption::new(at.to_string(), "Yes", *kind)).collect();
        match choose(allowed, &options) {
            RequestPermissionOutcome::Selected(selected) => {
                options.iter().find(|option| option.option_id == selected.option_id).map(|option| option.kind)
            }
            _ => None,
        }
    }

    #[test]
    fn an_answer_is_never_more_than_was_said() {
        let all = [AllowAlways, RejectAlways, AllowOnce, RejectOnce];
        assert_eq!(chosen(Allowed::Once, &all), Some(AllowOnce));
        assert_eq!(chosen(Allowed::Always, &all), Some(AllowAlways));
        assert_eq!(chosen(Allowed::No, &all), Some(RejectOnce));
        assert_eq!(chosen(Allowed::Once, &[AllowAlways, RejectOnce]), Some(RejectOnce));
        assert_eq!(chosen(Allowed::Always, &[AllowOnce, RejectOnce]), Some(AllowOnce));
        assert_eq!(chosen(Allowed::No, &[AllowOnce, RejectAlways]), Some(RejectAlways));
        assert_eq!(chosen(Allowed::No, &[AllowOnce, AllowAlways]), None);
        assert_eq!(chosen(Allowed::Once, &[]), None);
    }
}
