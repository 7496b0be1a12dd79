//! Packages whose program is a script: what its interpreter may read, and who runs it.

use super::world::{Running, World};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// An environment of Debian's Python that has a module `burnet`, without which a node starts no program in Python: an empty one, since the
/// program here does not use it.
fn python_with_the_sdk(world: &World) -> PathBuf {
    let folder = world.path("python");
    let made = Command::new("/usr/bin/python3").args(["-m", "venv", "--without-pip"]).arg(&folder).status();
    assert!(made.unwrap().success(), "no environment could be made");
    let library = fs::read_dir(folder.join("lib")).unwrap().next().unwrap().unwrap().path();
    fs::create_dir(library.join("site-packages/burnet")).unwrap();
    fs::write(library.join("site-packages/burnet/__init__.py"), "").unwrap();
    folder.join("bin/python3")
}

/// A package whose entry is `main.py` with this text, installed; the interpreter of the node is an environment with the SDK.
fn install_py(world: &World, kind: &str, script: &str) {
    let python = python_with_the_sdk(world);
    let config = format!("[python]\ninterpreter = '{}'\n", python.display());
    fs::write(world.path("burnet.toml"), config).unwrap();
    let program = world.path("app/main.py");
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(world.path("app/words.txt"), "from the package").unwrap();
    let manifest = format!(
        "name = 'my-py'\nversion = '1.0.0'\ndescription = 'It.'\nkind = '{kind}'\nabi = 2\nentry.any = 'main.py'\n\
         [files]\n'words.txt' = 'words.txt'\n"
    );
    fs::write(world.path("app/app.toml"), manifest).unwrap();
    world.done("app build $/app");
    world.done("app sign my-py-1.0.0.burnet --key alice");
    world.done("app install my-py-1.0.0.burnet");
}

/// The last line of its first life.
fn last_line(world: &World) -> String {
    let node = Running::start_until(world, "my-py", |app| app.status.last_end.is_some());
    node.app().status.last_end.unwrap().last_line.unwrap_or_default()
}

fn has_debians_python() -> bool {
    let has = Path::new("/usr/bin/python3").exists();
    if !has {
        eprintln!("left out: there is no /usr/bin/python3");
    }
    has
}

/// It sees the other files of its package, and no more of the state folder.
#[test]
fn a_python_program_runs_from_its_package() {
    if !has_debians_python() {
        return;
    }
    let world = World::new();
    let script = "import os, sys\nhere = os.path.dirname(sys.argv[0])\n\
                  print(open(here + '/words.txt').read(), os.path.exists(here + '/../../../trust.toml'), flush=True)\n";
    install_py(&world, "python", script);
    assert_eq!(last_line(&world), "from the package False");
}

/// Whatever its first line names would run as the node's user, outside of every zone.
#[test]
fn what_a_packages_file_names_is_never_run_outside_of_its_zone() {
    if !has_debians_python() {
        return;
    }
    for kind in ["python", "native"] {
        let world = World::new();
        let (named, trace) = (world.path("named"), world.path("trace"));
        fs::write(&named, format!("#!/bin/sh\ntouch {}\n", trace.display())).unwrap();
        fs::set_permissions(&named, fs::Permissions::from_mode(0o755)).unwrap();
        install_py(&world, kind, &format!("#!{}\nprint('it ran')\n", named.display()));
        let line = last_line(&world);
        assert_eq!(line.contains("it ran"), kind == "python", "{kind}: {line}");
        assert!(!trace.exists(), "{kind}");
    }
}
