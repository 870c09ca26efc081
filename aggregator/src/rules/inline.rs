//! A rule file with its lists in it, for who must not read files: the rules of a
//! running service are put as one document.

use std::{collections::BTreeMap, path::Path};

use super::{
    diagnostic::Problems,
    file::{self, RuleFile},
    lists::Lists,
    text::RuleText,
    write,
};

/// The bytes of the rule file at `path`; if it names files of lists, with their values
/// under `lists`. A file that names none is not looked at any further.
pub fn with_lists(path: &Path) -> Result<Vec<u8>, Problems> {
    let bytes = file::bytes(path)?;
    let name = path.display().to_string();
    let mut lists = Lists::beside(Some(path.parent().unwrap_or(Path::new(""))));
    let read = RuleFile::parse_with(&name, &bytes, &mut lists);
    let values = lists.in_files();
    if values.is_empty() {
        return Ok(bytes);
    }
    let read = read?;
    // What was read is text.
    let whole = whole(&String::from_utf8_lossy(&bytes), &values).into_bytes();
    match RuleFile::parse(&name, &whole) {
        Ok(same) if same == read => Ok(whole),
        _ => Err(file::whole(
            &name,
            "its lists cannot be put into it: say all of them under `lists`, or none".into(),
        )),
    }
}

fn whole(text: &str, lists: &BTreeMap<String, Vec<String>>) -> String {
    if RuleText::new(text).is_json()
        && let Some((object, _)) = text.rsplit_once('}')
    {
        let lists = serde_json::json!(lists);
        return format!("{object},\"lists\":{lists}}}\n");
    }
    let lists = write::mapping(lists);
    format!("{}\nlists: {lists}\n", text.trim_end())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn put(rules: &str) -> Result<String, String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("rules.yaml");
        fs::write(&file, rules).unwrap();
        fs::write(folder.path().join("vips"), "# vips\nno\n\"a\"\nb: c\n").unwrap();
        let whole = with_lists(&file).map_err(|problems| problems.to_string())?;
        Ok(String::from_utf8(whole).unwrap())
    }

    const RULE: &str = "name: r, match: { key_in: vips }, key: [header.x], limit: 1, window: 1s";

    #[test]
    fn the_lists_of_a_file_are_put_into_it_as_they_are_read() {
        let yaml = format!("version: 1\ndomain: d\nrules:\n  - {{ {RULE} }}\n");
        let whole = put(&yaml).unwrap();
        assert!(whole.starts_with(yaml.trim_end()), "{whole}");
        assert!(
            whole.ends_with("lists: { vips: [\"no\", \"\\\"a\\\"\", \"b: c\"] }\n"),
            "{whole}"
        );
        let json = r#"{"version":1,"domain":"d","rules":[{"name":"r","key":"header.x","limit":1,
            "window":"1s","match":{"key_in":"vips"}}]}"#;
        let whole = put(json).unwrap();
        assert!(RuleText::new(&whole).is_json(), "{whole}");
    }

    #[test]
    fn a_file_that_names_none_is_put_as_it_is_whatever_it_says() {
        let wrong = "version: 1\ndomain: d\nrules: none\n";
        assert_eq!(put(wrong).as_deref(), Ok(wrong));
    }

    #[test]
    fn lists_that_cannot_be_put_into_it_are_told_of() {
        let both = format!("version: 1\ndomain: d\nlists: {{ a: [b] }}\nrules: [{{ {RULE} }}]\n");
        assert!(put(&both).unwrap_err().contains("under `lists`"));
        let missing = both
            .replace("vips", "vops")
            .replace("lists: { a: [b] }\n", "");
        assert!(put(&missing).unwrap_err().contains("vops"));
    }
}
