//! The network of a run: one loopback that all its commands share, and the engine's way into it.
//!
//! A command that serves and a command that asks have to meet, and the engine has to see whether a server is up; but
//! nothing of it may be the host's network. So a *keeper*, this program again, makes a network namespace with nothing in
//! it but loopback, hands the engine a handle on it, and from then on makes sockets in there for the engine. Launchers
//! enter it by the handle. It lives as long as somebody has a handle: as long as the engine and what it runs.
//!
//! Not its role: who gets it (`sandbox`), what is listened to or looked at in it (the engine).
//!
//! Invariants: no thread of the engine ever stands in it; commands have no rights over it; with the engine it is gone.

#[cfg(target_os = "linux")]
pub(super) mod keeper;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use tokio::net::{TcpListener, TcpSocket, TcpStream};

#[cfg(target_os = "linux")]
pub(super) use keeper::Handles;

/// Elsewhere there are no namespaces to have a handle on.
#[cfg(not(target_os = "linux"))]
#[derive(Debug)]
pub(super) enum Handles {}

/// Connections that wait to be accepted.
const BACKLOG: u32 = 128;

/// Where the servers that commands start can be met.
#[derive(Debug, Clone)]
pub struct RunNetwork(Kind);

#[derive(Debug, Clone)]
enum Kind {
    /// The host's own: the commands have it, too.
    Host,
    #[cfg(target_os = "linux")]
    Kept(Arc<keeper::Keeper>),
}

impl RunNetwork {
    /// For commands that have the host's network.
    pub(super) const fn host() -> Self {
        Self(Kind::Host)
    }

    /// A new one. It is gone when the last of its handles is dropped.
    #[cfg(target_os = "linux")]
    pub(super) fn open() -> io::Result<Self> {
        Ok(Self(Kind::Kept(Arc::new(keeper::Keeper::start(super::sandbox::level().user)?))))
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn open() -> io::Result<Self> {
        Err(io::Error::from(io::ErrorKind::Unsupported))
    }

    /// Is it the host's own, with all that the host serves?
    pub const fn is_the_hosts(&self) -> bool {
        matches!(self.0, Kind::Host)
    }

    /// For whoever enters it.
    pub(super) fn handles(&self) -> Option<Arc<Handles>> {
        match &self.0 {
            Kind::Host => None,
            #[cfg(target_os = "linux")]
            Kind::Kept(keeper) => Some(keeper.handles()),
        }
    }

    /// Connects to a server on this port in there: by IPv4, or else by IPv6. How long that may take is for the caller
    /// to say; dropped, it is given up.
    pub async fn connect(&self, port: u16) -> io::Result<TcpStream> {
        let by_v4 = self.connect_to(IpAddr::V4(Ipv4Addr::LOCALHOST), port).await;
        match by_v4 {
            Ok(stream) => Ok(stream),
            // What is told is about the usual one.
            Err(error) => self.connect_to(IpAddr::V6(Ipv6Addr::LOCALHOST), port).await.map_err(|_| error),
        }
    }

    async fn connect_to(&self, address: IpAddr, port: u16) -> io::Result<TcpStream> {
        self.socket(address).await?.connect(SocketAddr::new(address, port)).await
    }

    /// Listens on 127.0.0.1 in there; port 0 takes a free one.
    pub async fn listen(&self, port: u16) -> io::Result<TcpListener> {
        let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let socket = self.socket(address).await?;
        socket.bind(SocketAddr::new(address, port))?;
        socket.listen(BACKLOG)
    }

    /// A socket of its own family belongs to the network that it was made in, whoever uses it.
    async fn socket(&self, address: IpAddr) -> io::Result<TcpSocket> {
        match &self.0 {
            Kind::Host if address.is_ipv4() => TcpSocket::new_v4(),
            Kind::Host => TcpSocket::new_v6(),
            #[cfg(target_os = "linux")]
            Kind::Kept(keeper) => {
                let keeper = keeper.clone();
                let made = tokio::task::spawn_blocking(move || keeper.socket(address.is_ipv6()));
                let made = made.await.map_err(io::Error::other)??;
                Ok(TcpSocket::from_std_stream(made.into()))
            }
        }
    }
}
