//! A node in a process of its own for an emulated network to connect to, and `burnet emulate` beside it.

use operator::client;
use operator::contract::{Answer, Question};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// How long the node may take to be there. Nothing passes by waiting.
const PATIENCE: Duration = Duration::from_secs(60);

/// A node.
pub struct Node {
    child: Child,
    folder: PathBuf,
    /// Where it listens for switches.
    pub address: String,
}

/// The laboratory, without what the environment would tell it.
pub fn burnet() -> Command {
    program(Path::new(env!("CARGO_BIN_EXE_burnet-lab")))
}

fn program(path: &Path) -> Command {
    let mut command = Command::new(path);
    command.env_remove("BURNET_SOCKET").env_remove("BURNET_LOG").stdin(Stdio::null());
    command
}

impl Node {
    /// With the learning switch.
    pub fn start() -> Node {
        Node::start_with(&["--app", "learning-switch"])
    }

    /// With what the arguments say.
    pub fn start_with(arguments: &[&str]) -> Node {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("burnet-emulate-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let socket = folder.join("node.sock");
        let words = ["run", "--listen", "127.0.0.1:0", "--log", "error", "--die-with-parent"];
        // A build of the whole workspace puts it beside the laboratory; of this package alone, `cargo build --package burnet` does.
        let mut command = program(&Path::new(env!("CARGO_BIN_EXE_burnet-lab")).with_file_name("burnet"));
        command.args(words).args(arguments).arg("--socket").arg(&socket);
        command.env("BURNET_STATE", folder.join("state"));
        let mut node = Node { child: command.spawn().unwrap(), folder, address: String::new() };
        let began = Instant::now();
        while node.address.is_empty() {
            assert!(began.elapsed() < PATIENCE, "the node does not come up");
            std::thread::sleep(Duration::from_millis(20));
            if let Ok(Answer::Apps(apps)) = client::ask(&socket, &Question::Apps)
                && apps.iter().all(|app| app.commands > 0)
                && let Ok(Answer::Node(answer)) = client::ask(&socket, &Question::Node)
            {
                node.address = answer.listen[0].clone();
            }
        }
        node
    }

    /// `burnet emulate` against this node.
    pub fn emulate(&self, arguments: &[&str]) -> Output {
        burnet().args(["emulate", "--controller", &self.address]).args(arguments).output().unwrap()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// What a command printed where its result goes.
pub fn said(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// What it printed beside that.
pub fn complained(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}
