//! The folder of a developer and an operator, the commands that they type there, and the node that they run.
//!
//! In: arguments of `burnet`. Out: what it prints. The folder is gone when the test is.

use std::fs;
use std::ops::Deref;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, Instant};

use monitor::{AppState, AppStatus, Verb};
use operator::contract::{AppView, Question};
use test_bed::{Bed, Node, PATIENCE};

/// Capabilities of an app that receives ARP.
pub const HEARS: &str = "[capabilities]\n'packet.in' = { match = ['arp'] }\n";

/// A folder with an operator's state folder and a developer's app.
pub struct World(pub Bed);

impl World {
    /// With a developer alice whom the operator trusts.
    pub fn new() -> World {
        let world = World(Bed::new(env!("CARGO_BIN_EXE_burnet")));
        fs::create_dir_all(world.path("app/bin")).unwrap();
        world.done("key new alice");
        world.trust("alice", "developer");
        world
    }

    /// A path in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path(name)
    }

    /// `burnet` with these arguments; `$` is this world's folder.
    pub fn burnet(&self, arguments: &str) -> Output {
        let folder = self.0.folder();
        let mut command = self.0.burnet();
        command.args(arguments.split_whitespace().map(|word| word.replace('$', folder.to_str().unwrap())));
        // Only a command that names the socket concerns a running node.
        command.env_remove("BURNET_SOCKET").current_dir(folder).output().unwrap()
    }

    pub fn done(&self, arguments: &str) -> String {
        let output = self.burnet(arguments);
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "burnet {arguments}: {complaint}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// The command ends with this exit code, and its last line on standard error holds `expected`.
    pub fn refused(&self, arguments: &str, code: i32, expected: &str) {
        let output = self.burnet(arguments);
        let complaint = String::from_utf8(output.stderr).unwrap();
        let last = complaint.lines().next_back().unwrap_or_default();
        assert!(last.starts_with("burnet: ") && last.contains(expected), "burnet {arguments}: {complaint}");
        assert_eq!(output.status.code(), Some(code), "burnet {arguments}: {complaint}");
    }

    pub fn trust(&self, name: &str, role: &str) {
        self.done(&format!("key trust $/state/keys/{name}.pub --role {role}"));
    }

    /// Writes the app's folder and builds it; out comes the package's file.
    pub fn built(&self, version: &str, tables: &str) -> PathBuf {
        let manifest = format!(
            "name = 'my-app'\nversion = '{version}'\ndescription = 'It.'\nkind = 'native'\nabi = 2\nentry.any = 'bin/my-app'\n{tables}"
        );
        fs::write(self.path("app/app.toml"), manifest).unwrap();
        let program = self.path("app/bin/my-app");
        fs::write(&program, "#!/bin/sh\nexit 0\n").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        self.done("app build $/app");
        self.path(&format!("my-app-{version}.burnet"))
    }

    /// The hub as a shared object of its own, built and signed by alice, and installed with all that a hub needs.
    pub fn install_hub(&self) {
        let hub = self.0.example("libshared_hub.so");
        let manifest = format!(
            "name = 'my-hub'\nversion = '1.0.0'\ndescription = 'It.'\nkind = 'shared-object'\nabi = 2\nentry.any = 'lib/hub.so'\n\
             [files]\n'lib/hub.so' = '{}'\n[capabilities]\n'packet.in' = true\n'packet.out' = true\n'rule.write' = true\n\
             'view.read' = true\n",
            hub.display()
        );
        fs::write(self.path("app/app.toml"), manifest).unwrap();
        self.done("app build $/app");
        self.done("app sign my-hub-1.0.0.burnet --key alice");
        self.done("app install my-hub-1.0.0.burnet --grant-all");
    }

    /// This command prints this sooner or later.
    pub fn eventually(&self, command: &str, expected: &str) {
        let began = Instant::now();
        while !self.done(command).contains(expected) {
            assert!(began.elapsed() < PATIENCE, "burnet {command}: {}", self.done(command));
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Built, and signed by alice.
    pub fn signed(&self, version: &str, tables: &str) -> String {
        let file = self.built(version, tables);
        let file = file.to_str().unwrap().to_owned();
        self.done(&format!("app sign {file} --key alice"));
        file
    }

    /// The folder of what is installed.
    pub fn folder(&self, name: &str) -> PathBuf {
        let app = self.path("state/apps").join(name);
        let mut entries = fs::read_dir(&app).unwrap().map(|entry| entry.unwrap().path());
        entries.find(|path| path.is_dir()).unwrap()
    }
}

/// A running node with an app that the test is about.
pub struct Running {
    node: Node,
    app: String,
}

impl Deref for Running {
    type Target = Node;

    fn deref(&self) -> &Node {
        &self.node
    }
}

impl Running {
    /// Starts a node with this app, with `=trusted` behind its name or not, and waits until the app runs.
    pub fn start(world: &World, app: &str) -> Running {
        Running::start_until(world, app, |app| app.commands > 0)
    }

    /// The same, but waits until this holds for the app.
    pub fn start_until(world: &World, app: &str, until: impl Fn(&AppView) -> bool) -> Running {
        let config = world.path("burnet.toml");
        let launch = world.0.node().app(app);
        let launch = if config.exists() { launch.args([Path::new("--config"), &config]) } else { launch };
        let name = app.trim_end_matches("=trusted").to_owned();
        let running = Running { node: launch.start(), app: name };
        running.wait("the app has begun", until);
        running
    }

    /// The same, and waits for the service that judges packages.
    pub fn start_judged(world: &World, app: &str) -> Running {
        let running = Running::start(world, app);
        running.wait_app("security", "the service runs", |service| service.status.state == AppState::Running);
        running
    }

    /// The app.
    pub fn app(&self) -> AppView {
        self.app_named(&self.app)
    }

    /// An app of the node.
    pub fn app_named(&self, name: &str) -> AppView {
        self.node.app(name)
    }

    /// The state of an app, if the node has it.
    pub fn find(&self, name: &str) -> Option<AppStatus> {
        Some(self.apps().into_iter().find(|app| app.status.app == name)?.status)
    }

    /// Waits until this holds for the app.
    pub fn wait(&self, what: &str, until: impl Fn(&AppView) -> bool) -> AppView {
        self.wait_app(&self.app, what, until)
    }

    /// Waits until the app is refused, for this reason.
    pub fn is_refused(&self, why: &str) -> AppView {
        self.wait(&format!("it is refused: {why}"), |app| {
            let reason = app.status.last_end.as_ref().map(|end| end.reason.as_str());
            app.status.state == AppState::Refused && reason.is_some_and(|reason| reason.contains(why))
        })
    }

    /// Waits until the app runs.
    pub fn runs(&self) -> AppView {
        self.wait("it runs", |app| app.status.state == AppState::Running && app.commands > 0)
    }

    /// Restarts the app, as the operator does.
    pub fn restart(&self) {
        let question = Question::App { app: self.app.clone(), verb: Verb::Restart, why: None };
        self.ask(&question).unwrap();
    }
}

/// Replaces text in a file.
pub fn change(path: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains(from), "{text}");
    fs::write(path, text.replace(from, to)).unwrap();
}
