//! The network that the commands of a run share: who meets in it, and who does not.

use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use nightloop::model::loop_file::{NetworkDecl, SandboxDecl};
use nightloop::tool::network::RunNetwork;
use nightloop::tool::process::{Access, CommandSpec, End, ProcessOutcome, run};
use nightloop::tool::sandbox::{Confinement, Overlay, Sandbox, decide, level};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_util::sync::CancellationToken;

use super::stage;

/// Says one line to each who comes, on the port that it is given.
const SERVER: &str = r#"exec perl -MIO::Socket::INET -e '
    my $s = IO::Socket::INET->new(LocalAddr => "127.0.0.1", LocalPort => 8080, Listen => 5, ReuseAddr => 1) or die $!;
    while (my $c = $s->accept) { print $c "served\n"; close $c }'"#;
const CLIENT: &str = r#"perl -MIO::Socket::INET -e '
    my $s = IO::Socket::INET->new(PeerAddr => "127.0.0.1", PeerPort => 8080) or die "nobody: $!"; print <$s>'"#;

struct Place {
    _folder: tempfile::TempDir,
    ws: PathBuf,
    state: PathBuf,
    sandbox: Sandbox,
}

impl Place {
    fn new(network: NetworkDecl) -> Self {
        stage::ready();
        let folder = tempfile::Builder::new().prefix("shared-").tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let (ws, state) = (root.join("ws"), root.join("state"));
        std::fs::create_dir(&ws).unwrap();
        std::fs::create_dir(&state).unwrap();
        let declared = SandboxDecl { network: Some(network.into()), ..SandboxDecl::default() };
        let name = format!("shared-{}-{}", std::process::id(), stage::next());
        let in_force = decide(&declared, true).unwrap();
        let sandbox = Sandbox::open(&declared, in_force, &ws, &state, Vec::new(), &name).unwrap();
        Self { _folder: folder, ws, state, sandbox }
    }

    fn network(&self) -> &RunNetwork {
        self.sandbox.network().unwrap()
    }

    async fn run(&self, worn: Option<Arc<Confinement>>, script: &str, stop: &CancellationToken) -> ProcessOutcome {
        let mut spec = CommandSpec::new(["sh", "-c", script].map(str::to_owned).to_vec(), &self.ws, "shared");
        spec.confinement = worn;
        spec.timeout = Duration::from_secs(60);
        run(spec, stop).await
    }

    /// Runs `asks` while a server runs in there and is up.
    async fn beside_a_server<T>(&self, asks: impl AsyncFnOnce() -> T) -> T {
        let stop = CancellationToken::new();
        let worn = self.sandbox.for_tool(Access::ReadWrite).unwrap();
        let served = self.run(worn, SERVER, &stop);
        let asked = async {
            let up = async {
                while self.network().connect(8080).await.is_err() {
                    tokio::task::yield_now().await;
                }
            };
            tokio::time::timeout(Duration::from_secs(30), up).await.expect("the server is not up");
            let answer = asks().await;
            stop.cancel();
            answer
        };
        tokio::join!(served, asked).1
    }
}

fn text(outcome: &ProcessOutcome) -> String {
    let said = [outcome.stdout.bytes.clone(), outcome.stderr.bytes.clone()].concat();
    String::from_utf8_lossy(&said).into_owned()
}

mod held {
    use super::*;

    #[tokio::test]
    async fn a_command_is_served_by_another_one_and_seen_by_the_engine() {
        let place = Place::new(NetworkDecl::Loopback);
        place
            .beside_a_server(async || {
                for access in [Access::ReadWrite, Access::ReadOnly] {
                    let worn = place.sandbox.for_tool(access).unwrap();
                    let outcome = place.run(worn, CLIENT, &CancellationToken::new()).await;
                    assert_eq!((outcome.end.clone(), text(&outcome).as_str()), (End::Exited(0), "served\n"));
                }
                let mut heard = String::new();
                place.network().connect(8080).await.unwrap().read_to_string(&mut heard).await.unwrap();
                assert_eq!(heard, "served\n");
            })
            .await;
        // With the command its server is gone, and another run has another network.
        assert!(place.network().connect(8080).await.is_err());
    }

    #[tokio::test]
    async fn commands_reach_what_the_engine_listens_to() {
        let place = Place::new(NetworkDecl::Loopback);
        let listener = place.network().listen(0).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let worn = place.sandbox.for_tool(Access::ReadOnly).unwrap();
        let client = CLIENT.replace("8080", &port.to_string());
        let never = CancellationToken::new();
        let asks = place.run(worn, &client, &never);
        let answers = async { listener.accept().await.unwrap().0.write_all(b"from the engine\n").await.unwrap() };
        let (outcome, ()) = tokio::join!(asks, answers);
        assert_eq!(text(&outcome), "from the engine\n");
    }

    #[tokio::test]
    async fn runs_and_the_host_are_out_of_reach_and_so_is_who_is_apart() {
        let place = Place::new(NetworkDecl::Loopback);
        let other = Place::new(NetworkDecl::Loopback);
        let host = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        assert!(place.network().connect(host.local_addr().unwrap().port()).await.is_err());
        place
            .beside_a_server(async || {
                assert!(other.network().connect(8080).await.is_err());
                let worn = other.sandbox.for_tool(Access::ReadWrite).unwrap();
                let outcome = other.run(worn, CLIENT, &CancellationToken::new()).await;
                assert!(text(&outcome).contains("nobody"), "{}", text(&outcome));
                if !level().overlay {
                    eprintln!("SKIPPED: this machine gives us no overlay");
                    return;
                }
                let path = |part: &str| place.state.join(part);
                for part in ["upper", "work", "apart"] {
                    std::fs::create_dir(path(part)).unwrap();
                }
                let overlay = Overlay { over: Vec::new(), upper: path("upper"), work: path("work") };
                let apart = place.sandbox.apart().unwrap();
                for (apart, expected) in [(None, "served"), (Some(apart.path()), "nobody")] {
                    let worn = place.sandbox.for_check(&[], &overlay, apart).unwrap();
                    let outcome = place.run(worn, CLIENT, &CancellationToken::new()).await;
                    assert!(text(&outcome).contains(expected), "{}", text(&outcome));
                }
            })
            .await;
    }

    #[tokio::test]
    async fn commands_cannot_change_it() {
        let place = Place::new(NetworkDecl::Loopback);
        let worn = place.sandbox.for_tool(Access::ReadWrite).unwrap();
        let script = "ip link set lo down 2>&1; ip link add dummy0 type dummy 2>&1; ip link show dummy0 2>&1; true";
        let outcome = place.run(worn, script, &CancellationToken::new()).await;
        assert_eq!(outcome.end, End::Exited(0), "{}", text(&outcome));
        // It is up still: somebody can listen and be met.
        let listener = place.network().listen(0).await.unwrap();
        place.network().connect(listener.local_addr().unwrap().port()).await.unwrap();
    }
}

/// All of the above once more, where a user namespace is needed.
#[test]
fn the_same_for_a_normal_user() {
    stage::as_a_normal_user("shared::held::");
}

#[tokio::test]
async fn without_a_network_there_is_nothing_to_meet_in() {
    let place = Place::new(NetworkDecl::Off);
    assert!(place.sandbox.network().unwrap_err().contains("no network"));
    let host = Place::new(NetworkDecl::On);
    assert!(host.network().is_the_hosts());
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let theirs = std::thread::spawn(move || listener.accept().unwrap().0.write_all(b"hello").unwrap());
    let mut met = host.network().connect(port).await.unwrap().into_std().unwrap();
    met.set_nonblocking(false).unwrap();
    let mut heard = String::new();
    met.read_to_string(&mut heard).unwrap();
    theirs.join().unwrap();
    assert_eq!(heard, "hello");
}
