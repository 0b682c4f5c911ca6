//! `src/lib.rs` lists the folders, lowest first; code may only use what stands
//! above it in that list.

use std::fs;
use std::path::{Path, PathBuf};

fn sources(path: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(path).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn folders_use_only_what_stands_above_them() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let map = fs::read_to_string(root.join("lib.rs")).unwrap();
    let order: Vec<&str> = map
        .lines()
        .filter_map(|line| line.strip_prefix("//! - [`")?.split('`').next())
        .collect();
    let rank = |name: &str| order.iter().position(|&folder| folder == name);
    assert!(order.len() > 10, "the map in lib.rs is not where it was");

    let mut files = Vec::new();
    sources(&root, &mut files);
    for file in files {
        let name = file.strip_prefix(&root).unwrap().iter().next().unwrap();
        let folder = name.to_str().unwrap().trim_end_matches(".rs");
        if folder == "lib" || folder == "main" {
            continue;
        }
        let own = rank(folder).unwrap_or_else(|| panic!("{folder} is missing in the map"));
        let text = fs::read_to_string(&file).unwrap();
        for used in text.split("crate::").skip(1) {
            let used = used
                .split(|c: char| !c.is_alphanumeric() && c != '_')
                .next()
                .unwrap();
            let used = rank(used).unwrap_or_else(|| {
                panic!("{}: crate::{used} is missing in the map", file.display())
            });
            assert!(
                used <= own,
                "{}: {folder} uses {}",
                file.display(),
                order[used]
            );
        }
    }
}
