//! `cargo xtask oci`: an image of a node, built without a registry and without a container engine.
//!
//! ```text
//!   burnet, its shared libraries, deploy/burnet.toml ──> one layer ──> config, manifest, index ──> target/packages/burnet-VERSION-oci.tar
//! ```
//!
//! In: the working tree, programs that are built now or named (`--binaries DIR`), and the C library of this machine. Out: a file in the form
//! of the OCI image layout 1.0, which also has the file that older `docker load` reads. The same input gives the same digest. With `--try`,
//! it runs the program in the unpacked image.

use crate::release::{self, copy, put};
use crate::{process, tree, trial};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// `cargo xtask oci`.
pub fn run(arguments: &[String]) -> Result<ExitCode, String> {
    let (tried, arguments): (Vec<&String>, Vec<&String>) =
        arguments.iter().partition(|argument| *argument == "--try");
    let programs = release::programs("oci", &arguments)?;
    let image = build(&programs.join("burnet"), &release::folder())?;
    println!("{}", image.display());
    if !tried.is_empty() {
        try_image(&image, &release::folder().join("oci/tried"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Builds the image of this program into a folder. Its path.
pub fn build(program: &Path, to: &Path) -> Result<PathBuf, String> {
    let (version, epoch_s) = (release::version()?, release::epoch_s()?);
    let (root, layout) = (to.join("oci/root"), to.join("oci/layout"));
    release::remove(&to.join("oci"))?;
    fill(&root, program)?;
    release::make(&layout.join("blobs/sha256"))?;
    let layer = to.join("oci/layer.tar");
    release::tar(&root, &layer, epoch_s)?;
    let diff_id = release::sha256(&layer)?;
    let layer = Blob::take(&layout, &release::gzip(&layer)?, "application/vnd.oci.image.layer.v1.tar+gzip")?;
    let config = json!({
        "architecture": release::architecture(),
        "os": "linux",
        "created": time_text(epoch_s)?,
        "config": {
            "Entrypoint": ["/usr/bin/burnet"],
            "Cmd": ["run", "--config", "/etc/burnet/burnet.toml"],
            "Env": ["PATH=/usr/bin"],
            "ExposedPorts": { "6633/tcp": {}, "6653/tcp": {}, "8181/tcp": {} },
            "Volumes": { "/var/lib/burnet": {} },
            "StopSignal": "SIGTERM",
            "Labels": { "org.opencontainers.image.title": "burnet", "org.opencontainers.image.version": version },
        },
        "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{diff_id}")] },
        "history": [{ "created": time_text(epoch_s)?, "created_by": "cargo xtask oci" }],
    });
    let config = Blob::write(&layout, &config, "application/vnd.oci.image.config.v1+json")?;
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": config.descriptor(),
        "layers": [layer.descriptor()],
    });
    let manifest = Blob::write(&layout, &manifest, "application/vnd.oci.image.manifest.v1+json")?;
    describe(&layout, &version, &[config, layer], &manifest)?;
    let image = to.join(format!("burnet-{version}-oci.tar"));
    release::tar(&layout, &image, epoch_s)?;
    Ok(image)
}

/// Unpacks an image as an engine does, and runs `burnet doctor` in it.
fn try_image(image: &Path, folder: &Path) -> Result<(), String> {
    trial::prepare().map_err(|reason| format!("the image cannot be tried: {reason}"))?;
    unpack(image, folder)?;
    let read = |path: &str| -> Result<Value, String> {
        serde_json::from_str(&tree::read_text(&folder.join(path))?)
            .map_err(|error| format!("{path}: {error}"))
    };
    let path_of = |descriptor: &Value| {
        let digest = descriptor["digest"].as_str().and_then(|digest| digest.strip_prefix("sha256:"));
        format!("blobs/sha256/{}", digest.unwrap_or_default())
    };
    let manifest = read(&path_of(&read("index.json")?["manifests"][0]))?;
    let root = folder.join("root");
    unpack(&folder.join(path_of(&manifest["layers"][0])), &root)?;
    process::must(&mut trial::inside(&root, &["/usr/bin/burnet", "doctor"]), release::LIMIT)
}

fn unpack(archive: &Path, to: &Path) -> Result<(), String> {
    release::make(to)?;
    let mut tar = Command::new("tar");
    process::must(tar.arg("--extract").arg("--file").arg(archive).arg("--directory").arg(to), release::LIMIT)
}

/// The files that lead to the blobs.
fn describe(layout: &Path, version: &str, parts: &[Blob; 2], manifest: &Blob) -> Result<(), String> {
    let mut descriptor = manifest.descriptor();
    descriptor["platform"] = json!({ "architecture": release::architecture(), "os": "linux" });
    descriptor["annotations"] = json!({
        "org.opencontainers.image.ref.name": version,
        "io.containerd.image.name": format!("docker.io/library/burnet:{version}"),
    });
    let index = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [descriptor],
    });
    let [config, layer] = parts;
    let of_docker = json!([{ "Config": config.path(), "RepoTags": [format!("burnet:{version}")], "Layers": [layer.path()] }]);
    put(&layout.join("index.json"), index.to_string(), 0o644)?;
    put(&layout.join("manifest.json"), of_docker.to_string(), 0o644)?;
    put(&layout.join("oci-layout"), json!({ "imageLayoutVersion": "1.0.0" }).to_string(), 0o644)
}

/// A file that is named by its digest.
struct Blob {
    digest: String,
    bytes: u64,
    media_type: &'static str,
}

impl Blob {
    /// Moves a file into the layout.
    fn take(layout: &Path, file: &Path, media_type: &'static str) -> Result<Blob, String> {
        let cannot = |error: std::io::Error| format!("{}: {error}", file.display());
        let digest = release::sha256(file)?;
        let bytes = fs::metadata(file).map_err(cannot)?.len();
        fs::rename(file, layout.join("blobs/sha256").join(&digest)).map_err(cannot)?;
        Ok(Blob { digest, bytes, media_type })
    }

    fn write(layout: &Path, value: &Value, media_type: &'static str) -> Result<Blob, String> {
        let draft = layout.join("draft");
        put(&draft, value.to_string(), 0o644)?;
        Blob::take(layout, &draft, media_type)
    }

    fn path(&self) -> String {
        format!("blobs/sha256/{}", self.digest)
    }

    fn descriptor(&self) -> Value {
        json!({ "mediaType": self.media_type, "digest": format!("sha256:{}", self.digest), "size": self.bytes })
    }
}

/// The root of the image: the program, the libraries that it loads, its configuration, and folders.
fn fill(root: &Path, program: &Path) -> Result<(), String> {
    copy(program, &root.join("usr/bin/burnet"), 0o755)?;
    for library in libraries(program)? {
        // A library is found under the name that the program asks for, whatever the link leads to.
        let place = library.strip_prefix("/usr").unwrap_or(&library);
        let place = place.strip_prefix("/").unwrap_or(place);
        copy(&library, &root.join("usr").join(place), 0o755)?;
    }
    // As on Debian, so that a zone finds them as on every machine.
    for folder in ["lib", "lib64"] {
        release::make(&root.join("usr").join(folder))?;
        symlink(format!("usr/{folder}"), root.join(folder)).map_err(|error| format!("{folder}: {error}"))?;
    }
    copy(&tree::root().join("deploy/burnet.toml"), &root.join("etc/burnet/burnet.toml"), 0o644)?;
    copy(&tree::root().join("LICENSE"), &root.join("usr/share/doc/burnet/LICENSE"), 0o644)?;
    put(&root.join("etc/passwd"), "root:x:0:0:root:/root:/usr/sbin/nologin\n", 0o644)?;
    put(&root.join("etc/group"), "root:x:0:\n", 0o644)?;
    for folder in ["dev", "proc", "run/burnet", "sys", "tmp", "var/lib/burnet"] {
        release::make(&root.join(folder))?;
    }
    Ok(())
}

/// The shared libraries of a program, and the loader.
fn libraries(program: &Path) -> Result<Vec<PathBuf>, String> {
    let listed = process::output_of(Command::new("ldd").arg(program))?;
    let paths: Vec<PathBuf> = listed.lines().filter_map(library_in).collect();
    if paths.is_empty() {
        Err(format!("ldd names no library of {}: {listed}", program.display()))
    } else {
        Ok(paths)
    }
}

/// The path in a line of ldd: `NAME => PATH (0x…)`, or `PATH (0x…)`. The kernel's own library has none.
fn library_in(line: &str) -> Option<PathBuf> {
    let path = line.rsplit("=> ").next()?.split_whitespace().next()?;
    path.starts_with('/').then(|| path.into())
}

fn time_text(epoch_s: u64) -> Result<String, String> {
    let mut date = Command::new("date");
    date.args(["--utc", "+%Y-%m-%dT%H:%M:%SZ", "--date"]).arg(format!("@{epoch_s}"));
    Ok(process::output_of(&mut date)?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::release::tests::Folder;

    #[test]
    fn the_libraries_are_found_in_what_ldd_prints() {
        let check =
            |line: &str, expected: Option<&str>| assert_eq!(library_in(line), expected.map(PathBuf::from));
        check("\tlinux-vdso.so.1 (0x00007f976af5f000)", None);
        check("\tlibx.so => not found", None);
        check(
            "\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x1)",
            Some("/lib/x86_64-linux-gnu/libc.so.6"),
        );
        check("\t/lib64/ld-linux-x86-64.so.2 (0x1)", Some("/lib64/ld-linux-x86-64.so.2"));
    }

    fn read(layout: &Path, path: &str) -> Value {
        serde_json::from_str(&tree::read_text(&layout.join(path)).unwrap()).unwrap()
    }

    /// The blob of a descriptor, whose digest and size are those of the file.
    fn blob(layout: &Path, descriptor: &Value) -> PathBuf {
        let digest = descriptor["digest"].as_str().unwrap().strip_prefix("sha256:").unwrap();
        let file = layout.join("blobs/sha256").join(digest);
        assert_eq!(release::sha256(&file).unwrap(), digest);
        assert_eq!(fs::metadata(&file).unwrap().len(), descriptor["size"].as_u64().unwrap());
        file
    }

    #[test]
    fn an_image_is_valid_and_the_same_for_the_same_program() {
        // Any program with libraries.
        let program = process::find("true").unwrap();
        let digest = |name: &str| {
            let folder = Folder::new(name);
            let image = build(&program, &folder.0).unwrap();
            check_image(&image, &folder.0.join("unpacked"));
            release::sha256(&image).unwrap()
        };
        assert_eq!(digest("oci-1"), digest("oci-2"));
    }

    fn check_image(image: &Path, layout: &Path) {
        unpack(image, layout).unwrap();
        assert_eq!(read(layout, "oci-layout")["imageLayoutVersion"], "1.0.0");
        let index = read(layout, "index.json");
        let manifest = blob(layout, &index["manifests"][0]);
        let manifest: Value = serde_json::from_str(&tree::read_text(&manifest).unwrap()).unwrap();
        let config = blob(layout, &manifest["config"]);
        let config: Value = serde_json::from_str(&tree::read_text(&config).unwrap()).unwrap();
        let layer = blob(layout, &manifest["layers"][0]);
        let tar = layout.join("layer.tar");
        let plain = process::output_of(Command::new("sh").arg("-c").arg(format!(
            "gzip -dc {} > {} && sha256sum < {}",
            layer.display(),
            tar.display(),
            tar.display()
        )))
        .unwrap();
        let diff_id = config["rootfs"]["diff_ids"][0].as_str().unwrap();
        assert_eq!(diff_id, format!("sha256:{}", plain.split_whitespace().next().unwrap()));
        let of_docker = read(layout, "manifest.json");
        assert!(layout.join(of_docker[0]["Config"].as_str().unwrap()).is_file());
        assert!(layout.join(of_docker[0]["Layers"][0].as_str().unwrap()).is_file());
        let root = layout.join("root");
        unpack(&tar, &root).unwrap();
        if process::is_root() {
            // It finds its loader and its libraries below this root.
            process::must(Command::new("chroot").arg(&root).arg("/usr/bin/burnet"), release::LIMIT).unwrap();
        } else {
            println!("left out: running the program in the image's root: only root may change the root");
        }
    }
}
