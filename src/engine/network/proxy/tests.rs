//! The proxy by itself, with servers of this machine in place of the world.

use super::*;

struct World {
    proxy: Proxy,
    place: SocketAddr,
    server: TcpListener,
}

impl World {
    /// `a.test` is listed and leads to the server.
    async fn new() -> Self {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let place = listener.local_addr().unwrap();
        let patterns = ["a.test", "127.0.0.2"].map(|text| Pattern::parse(text).unwrap()).to_vec();
        let resolved = BTreeMap::from([("a.test".to_owned(), server.local_addr().unwrap())]);
        Self { proxy: Proxy::start(listener, patterns, None, resolved, "hint"), place, server }
    }

    async fn say(&self, text: &[u8]) -> TcpStream {
        let mut client = TcpStream::connect(self.place).await.unwrap();
        client.write_all(text).await.unwrap();
        client
    }

    async fn answer(&self, text: &[u8]) -> String {
        let mut said = String::new();
        self.say(text).await.read_to_string(&mut said).await.unwrap();
        said
    }
}

#[tokio::test]
async fn a_tunnel_passes_everything_and_is_noted_when_it_is_cut() {
    let mut world = World::new().await;
    let mut client = world.say(b"CONNECT a.test:443 HTTP/1.1\r\n\r\nat once").await;
    let (mut server, _) = world.server.accept().await.unwrap();
    let mut heard = [0; 7];
    server.read_exact(&mut heard).await.unwrap();
    assert_eq!(&heard, b"at once");
    server.write_all(b"back").await.unwrap();
    let mut said = [0; 43];
    client.read_exact(&mut said).await.unwrap();
    assert!(said.ends_with(b"\r\n\r\nback"), "{}", String::from_utf8_lossy(&said));
    assert!(world.proxy.take_seen().connections.is_empty(), "it is not over");
    world.proxy.stop().await;
    let seen = world.proxy.take_seen().connections;
    let count = Count { times: 1, sent: 7, received: 4 };
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), [(("a.test".to_owned(), 443, None), count)]);
    assert_eq!(client.read(&mut [0; 1]).await.unwrap_or(0), 0, "it is cut");
}

#[tokio::test]
async fn what_may_not_be_reached_is_refused_with_the_reason() {
    let world = World::new().await;
    let unlisted = world.answer(b"CONNECT b.test:443 HTTP/1.1\r\n\r\n").await;
    assert!(unlisted.starts_with("HTTP/1.1 403 ") && unlisted.contains("b.test:443: not on the list"), "{unlisted}");
    assert!(unlisted.contains("hint"), "{unlisted}");
    let port = world.answer(b"CONNECT a.test:22 HTTP/1.1\r\n\r\n").await;
    assert!(port.contains("only the ports 443 and 80") && !port.contains("hint"), "{port}");
    let this_machine = world.answer(b"GET http://127.0.0.1/ HTTP/1.1\r\n\r\n").await;
    assert!(this_machine.contains("not on the list"), "{this_machine}");
    world.proxy.allow_only(vec![Pattern::parse("localhost").unwrap()]);
    let by_name = world.answer(b"GET http://localhost/ HTTP/1.1\r\n\r\n").await;
    assert!(by_name.contains("address of this machine"), "{by_name}");
    world.proxy.allow_only(vec![Pattern::parse("127.0.0.2").unwrap()]);
    // Listed as it is, it may be tried; whether anybody is there is another matter.
    let listed = world.answer(b"CONNECT 127.0.0.2:443 HTTP/1.1\r\n\r\n").await;
    assert!(!listed.contains("address of this machine"), "{listed}");
    for odd in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[b'x'; MAX_HEAD]] {
        assert!(world.answer(odd).await.starts_with("HTTP/1.1 400 "));
    }
}

#[tokio::test]
async fn kinds_that_are_told_apart_are_few() {
    let world = World::new().await;
    for number in 0..MAX_KINDS + 5 {
        world.answer(format!("CONNECT h{number}.test:443 HTTP/1.1\r\n\r\n").as_bytes()).await;
    }
    let seen = world.proxy.take_seen().connections;
    assert_eq!(seen.len(), MAX_KINDS + 1);
    let others = seen.iter().find(|((host, ..), _)| host == network::OTHERS).unwrap();
    assert_eq!(others.1.times, 5);
}
