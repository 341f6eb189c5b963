//! What a launcher is told, in bytes: the policy, what the machine can enforce, and which layer a test leaves out.
//!
//! Invariant: what comes out is what went in, paths that are no text included. The times of a policy stay with the
//! engine, which decides when it is old.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::layer::Layer;
use super::level::Level;
use super::overlay::{Overlay, Placed};
use super::policy::Policy;
use crate::model::loop_file::NetworkDecl;
use crate::tool::launcher::wire::{Reader, Writer};

#[derive(Debug, Clone)]
pub(in crate::tool) struct Setup {
    pub policy: Policy,
    pub level: Level,
    pub without: Option<Layer>,
}

impl Setup {
    pub(in crate::tool) fn encode(&self) -> Vec<u8> {
        let Level { landlock, seccomp, mounts, loopback, user, pids, overlay } = self.level;
        let mut out = Writer::default();
        out.number(i64::from(landlock));
        for flag in [seccomp, mounts, loopback, user, pids, overlay] {
            out.number(i64::from(flag));
        }
        out.number(self.without.map_or(-1, |layer| layer as i64));
        let policy = &self.policy;
        for paths in [&policy.write, &policy.read, &policy.hidden, &policy.sealed] {
            out.list(paths.iter().map(|path| path.as_os_str().as_bytes()));
        }
        out.number(match policy.network {
            NetworkDecl::Off => 0,
            NetworkDecl::Loopback => 1,
            NetworkDecl::On => 2,
        });
        out.number(i64::from(policy.local_sockets));
        out.number(i64::from(policy.terminals));
        out.number(i64::from(policy.read_only));
        out.text(policy.tmp.as_os_str().as_bytes());
        out.text(policy.void.as_os_str().as_bytes());
        // Where it is put first; an empty list is none.
        let placed = policy
            .overlay
            .iter()
            .flat_map(|Placed { at, overlay }| [at, &overlay.upper, &overlay.work].into_iter().chain(&overlay.over));
        let placed: Vec<_> = placed.map(|path| path.as_os_str().as_bytes()).collect();
        out.list(placed.into_iter());
        out.0
    }

    pub(in crate::tool) fn decode(bytes: &[u8]) -> io::Result<Self> {
        let mut from = Reader(bytes);
        let landlock = u8::try_from(from.number()?).unwrap_or(0);
        let mut flag = || from.number().map(|number| number != 0);
        let (seccomp, mounts, loopback, user, pids, overlays) = (flag()?, flag()?, flag()?, flag()?, flag()?, flag()?);
        let without = from.number()?;
        let mut paths = || -> io::Result<Vec<PathBuf>> { Ok(from.list()?.into_iter().map(path).collect()) };
        let (write, read, hidden, sealed) = (paths()?, paths()?, paths()?, paths()?);
        let network = match from.number()? {
            1 => NetworkDecl::Loopback,
            2 => NetworkDecl::On,
            _ => NetworkDecl::Off,
        };
        let (local_sockets, terminals, read_only) = (from.number()? != 0, from.number()? != 0, from.number()? != 0);
        let (tmp, void) = (path(from.text()?), path(from.text()?));
        let overlay = match from.list()?.as_slice() {
            [at, upper, work, over @ ..] => {
                let over = over.iter().map(|layer| path(layer)).collect();
                Some(Placed { at: path(at), overlay: Overlay { over, upper: path(upper), work: path(work) } })
            }
            _ => None,
        };
        let walked = Vec::new();
        Ok(Self {
            policy: Policy {
                write,
                read,
                hidden,
                sealed,
                overlay,
                network,
                local_sockets,
                terminals,
                read_only,
                tmp,
                void,
                walked,
            },
            level: Level { landlock, seccomp, mounts, loopback, user, pids, overlay: overlays },
            without: Layer::ALL.into_iter().find(|layer| *layer as i64 == without),
        })
    }
}

fn path(bytes: &[u8]) -> PathBuf {
    Path::new(OsStr::from_bytes(bytes)).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comes_out_as_it_went_in() {
        let mut policy = Policy::trial(NetworkDecl::Loopback);
        policy.read = vec![path(b"/a\xff"), PathBuf::from("/b c")];
        policy.sealed = vec![PathBuf::from("/s")];
        policy.read_only = true;
        policy.terminals = true;
        let level = Level { landlock: 7, seccomp: true, mounts: true, user: true, pids: true, ..Level::default() };
        let overlay = Overlay { over: vec![path(b"/o\xff")], upper: PathBuf::from("/u"), work: PathBuf::from("/w") };
        policy.overlay = Some(Placed { at: PathBuf::from("/at"), overlay });
        for without in [None, Some(Layer::Sweep)] {
            let setup = Setup { policy: policy.clone(), level, without };
            let again = Setup::decode(&setup.encode()).unwrap();
            assert_eq!(format!("{again:?}"), format!("{setup:?}"));
        }
        assert!(Setup::decode(b"short").is_err());
    }
}
