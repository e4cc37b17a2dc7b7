//! The files of the repository.

use std::path::Path;

/// A Rust source.
pub(crate) struct Source {
    /// Its path from the root, with `/` as separator.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl Source {
    /// Whether it is test code. Such a file may be long, since it lists cases.
    pub(crate) fn is_test(&self) -> bool {
        self.path.split('/').any(|part| matches!(part, "tests" | "tests.rs" | "benches"))
    }
}

/// Every text file of the repository with its path from the root, sorted by path. Build outputs are
/// left out.
pub(crate) fn files() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    let mut pending = vec![root.to_owned()];
    while let Some(folder) = pending.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder of the repository") {
            let path = entry.expect("an entry of a folder").path();
            let name =
                path.file_name().and_then(|n| n.to_str()).expect("file names are UTF-8").to_owned();
            if path.is_dir() && !matches!(name.as_str(), "target" | ".git" | "wip" | "node_modules")
            {
                pending.push(path);
            } else if path.is_file() {
                let relative =
                    path.strip_prefix(root).expect("below the root").to_str().expect("UTF-8");
                // Files that are not text, such as the built kernels, need no reading.
                if let Ok(text) = String::from_utf8(std::fs::read(&path).expect("a readable file"))
                {
                    found.push((relative.replace('\\', "/"), text));
                }
            }
        }
    }
    found.sort();
    found
}

/// Every Rust source, sorted by path.
pub(crate) fn sources() -> Vec<Source> {
    let rust = files().into_iter().filter(|(path, _)| path.ends_with(".rs"));
    rust.map(|(path, text)| Source { path, text }).collect()
}
