//! Every use of `unsafe`, with the reason that makes it right.
//!
//! Of the crates that embedders link, `jit` alone has unsafe code. `jit/UNSAFE.md` lists it
//! completely, so that a reviewer sees each change: run the test with `OIR_BLESS=1` to write the
//! list anew.

use crate::code::{HAS_UNSAFE, identifiers_of};
use crate::report;
use crate::tree::{Source, sources};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// The file that lists the uses.
const LIST: &str = "jit/UNSAFE.md";

const HEADER: &str = "\
# Unsafe code

Every unsafe block, function and implementation of the crate `jit`, by file and function, with its
reason. For a function the reason is its contract. No other crate that embedders link has unsafe
code; the client in `examples/ebpf` has memory of its own. The test
`unsafe_code_is_listed` (`tests/tidy/unsafe_blocks.rs`) writes this list with `OIR_BLESS=1`, and
fails if it is out of date.
";

/// Phrases of a reason that leans on another reason.
const BORROWED: [&str; 4] = ["as above", "same as", "likewise", "see above"];

/// One use of `unsafe`.
struct UnsafeUse {
    /// The kind and the place of the use: `block in f`.
    place: String,
    /// The line of the keyword.
    line: usize,
    /// Its reason: the first line of the comment, if it is one, and the text.
    reason: Option<(Option<usize>, String)>,
}

/// Collects the uses of a file.
struct UnsafeCollector<'s> {
    lines: Vec<&'s str>,
    functions: Vec<String>,
    found: Vec<UnsafeUse>,
    /// The keywords that need no reason of their own: keywords of types and attributes.
    others: usize,
}

impl UnsafeCollector<'_> {
    fn add(&mut self, kind: &str, name: Option<String>, line: usize) {
        let place = match (name, self.functions.last()) {
            (Some(name), _) => format!("{kind} `{name}`"),
            (None, Some(function)) => format!("{kind} in `{function}`"),
            (None, None) => kind.to_owned(),
        };
        let reason = comment_before(&self.lines, line);
        self.found.push(UnsafeUse { place, line, reason });
    }

    /// Visits the body of a function, and adds the function if it is unsafe.
    fn function(&mut self, signature: &syn::Signature, attributes: &[syn::Attribute]) {
        self.functions.push(signature.ident.to_string());
        if let Some(keyword) = &signature.unsafety {
            let reason = contract(attributes).map(|text| (None, text));
            let place = format!("function `{}`", signature.ident);
            self.found.push(UnsafeUse { place, line: keyword.span().start().line, reason });
        }
    }
}

impl<'ast> Visit<'ast> for UnsafeCollector<'_> {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(&item.sig, &item.attrs);
        visit::visit_item_fn(self, item);
        self.functions.pop();
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.function(&item.sig, &item.attrs);
        visit::visit_impl_item_fn(self, item);
        self.functions.pop();
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        if let Some(keyword) = &item.unsafety {
            let of = item.trait_.as_ref().map(|(_, path, _)| words(path)).unwrap_or_default();
            let syn::Type::Path(ty) = &*item.self_ty else { panic!("{of} for no named type") };
            let name = format!("{of} for {}", words(&ty.path));
            self.add("implementation of", Some(name), keyword.span().start().line);
        }
        visit::visit_item_impl(self, item);
    }

    fn visit_item_foreign_mod(&mut self, item: &'ast syn::ItemForeignMod) {
        if let Some(keyword) = &item.unsafety {
            let names = item.items.iter().map(|item| match item {
                syn::ForeignItem::Fn(item) => item.sig.ident.to_string(),
                syn::ForeignItem::Static(item) => item.ident.to_string(),
                _ => panic!("a foreign item that is neither a function nor a static"),
            });
            let names = names.collect::<Vec<_>>().join(", ");
            self.add("declarations of", Some(names), keyword.span().start().line);
        }
    }

    fn visit_expr_unsafe(&mut self, block: &'ast syn::ExprUnsafe) {
        self.add("block", None, block.unsafe_token.span().start().line);
        visit::visit_expr_unsafe(self, block);
    }

    fn visit_type_bare_fn(&mut self, function: &'ast syn::TypeBareFn) {
        self.others += usize::from(function.unsafety.is_some());
        visit::visit_type_bare_fn(self, function);
    }

    fn visit_attribute(&mut self, attribute: &'ast syn::Attribute) {
        self.others += usize::from(attribute.path().is_ident("unsafe"));
    }
}

/// A path as it is written, without generics.
fn words(path: &syn::Path) -> String {
    let names = path.segments.iter().map(|segment| segment.ident.to_string());
    names.collect::<Vec<_>>().join("::")
}

/// The comment with `SAFETY:` before the statement that contains a line, and the line it begins at.
fn comment_before(lines: &[&str], line: usize) -> Option<(Option<usize>, String)> {
    // Lines count from 1. The keyword may stand on a later line of its statement than the first.
    let mut last = line - 1;
    let is_comment = |at: usize| lines[at].trim_start().starts_with("// ");
    while last > 0 && !is_comment(last - 1) {
        let before = lines[last - 1].trim();
        if before.is_empty() || before.ends_with([';', '}', '{']) {
            return None;
        }
        last -= 1;
    }
    let first = (0..last).rev().take_while(|at| is_comment(*at)).last()?;
    let text: Vec<&str> =
        lines[first..last].iter().map(|l| l.trim_start().trim_start_matches("// ")).collect();
    let text = text.join(" ");
    let at = text.find("SAFETY: ")?;
    Some((Some(first), text[at + "SAFETY: ".len()..].to_owned()))
}

/// The contract of an unsafe function: the section `# Safety` of its documentation.
fn contract(attributes: &[syn::Attribute]) -> Option<String> {
    let lines = attributes.iter().filter(|a| a.path().is_ident("doc")).filter_map(|a| {
        let value = &a.meta.require_name_value().ok()?.value;
        let syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) = value else {
            return None;
        };
        Some(text.value().trim().to_owned())
    });
    let section = lines.skip_while(|line| line != "# Safety").skip(1);
    let text: Vec<String> = section.take_while(|line| !line.starts_with("# ")).collect();
    let text = text.join(" ").trim().to_owned();
    (!text.is_empty()).then_some(text)
}

/// The uses of a source, and the number of other keywords.
fn uses(source: &Source) -> (Vec<UnsafeUse>, usize) {
    let file = syn::parse_file(&source.text)
        .unwrap_or_else(|e| panic!("{} is not Rust: {e}", source.path));
    let lines = source.text.lines().collect();
    let mut collector = UnsafeCollector { lines, functions: vec![], found: vec![], others: 0 };
    collector.visit_file(&file);
    (collector.found, collector.others)
}

/// The findings about the reasons of one file. `texts` has the places of all reasons so far.
fn findings(path: &str, uses: &[UnsafeUse], texts: &mut BTreeMap<String, String>) -> Vec<String> {
    let mut findings = Vec::new();
    let mut last = None;
    for UnsafeUse { place, line, reason } in uses {
        let at = format!("{path}:{line}: {place}");
        let Some((begins, text)) = reason else {
            findings.push(format!("{at} has no reason"));
            continue;
        };
        if begins.is_some() && *begins == last {
            findings.push(format!("{at} has the comment of another use"));
        }
        last = *begins;
        if BORROWED.iter().any(|phrase| text.to_lowercase().contains(phrase)) {
            findings.push(format!("{at} leans on another reason: {text}"));
        }
        if let Some(other) = texts.insert(text.clone(), at.clone()) {
            findings.push(format!("{at} has the words of {other}"));
        }
    }
    findings
}

#[test]
fn unsafe_code_is_listed() {
    let (mut list, mut wrong, mut checked) = (HEADER.to_owned(), Vec::new(), 0);
    let mut texts = BTreeMap::new();
    for source in sources() {
        let words = identifiers_of(&source).iter().filter(|(word, _)| word == "unsafe").count();
        if words == 0 {
            continue;
        }
        if !source.path.starts_with("jit/") {
            if !HAS_UNSAFE.iter().any(|place| source.path.starts_with(place)) {
                wrong.push(format!("{} has unsafe code", source.path));
            }
            continue;
        }
        let (uses, others) = uses(&source);
        checked += uses.len();
        if uses.len() + others != words {
            wrong.push(format!("{} has unsafe code in a macro, which is not listed", source.path));
        }
        wrong.extend(findings(&source.path, &uses, &mut texts));
        if uses.is_empty() {
            continue;
        }
        write!(list, "\n## {}\n\n", source.path).expect("text grows");
        for UnsafeUse { place, reason, .. } in &uses {
            let text = reason.as_ref().map_or("", |(_, text)| text);
            writeln!(list, "- {place}: {text}").expect("text grows");
        }
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(LIST);
    if std::env::var_os("OIR_BLESS").is_some() {
        std::fs::write(&file, &list).expect("the list can be written");
    }
    if std::fs::read_to_string(&file).ok().as_ref() != Some(&list) {
        wrong.push(format!("{LIST} is out of date: run this test with OIR_BLESS=1"));
    }
    report(checked, wrong);
}

#[test]
fn reasons_that_are_missing_or_borrowed_are_found() {
    let text = "\
fn f() {
    // SAFETY: it is right.
    let x =
        unsafe { a() };
    unsafe { b() };
    // SAFETY: as above.
    unsafe { c() };
    // SAFETY: it is right.
    unsafe { d() }; unsafe { e() };
}

/// Does it.
///
/// # Safety
/// The caller is
/// careful.
unsafe fn g() {}

unsafe fn h() {}
";
    let source = Source { path: "f.rs".to_owned(), text: text.to_owned() };
    let (uses, others) = uses(&source);
    assert_eq!((uses.len(), others), (7, 0));
    assert_eq!(
        uses[5].reason.as_ref().map(|(_, text)| text.as_str()),
        Some("The caller is careful.")
    );
    let found = findings("f.rs", &uses, &mut BTreeMap::new());
    let says = |at: usize, what: &str| assert!(found[at].contains(what), "{found:#?}");
    assert_eq!(found.len(), 6, "{found:#?}");
    says(0, "f.rs:5: block in `f` has no reason");
    says(1, "leans on another");
    says(2, "has the words of f.rs:4");
    says(3, "the comment of another");
    says(4, "has the words of");
    says(5, "function `h` has no reason");
}
