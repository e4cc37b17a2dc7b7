//! Counts over doc comments and manuals that show whether prose is readable.
//!
//! Three counts stand for three habits. Clauses that begin with `what` or `whoever` have a pronoun
//! where a noun belongs. Headless phrases (`those of`, `has none`) leave the noun to the reader.
//! Riddles are sentences made of pronouns and function words, which name nothing. The counts serve
//! reading: a sentence is rewritten because a reader stumbles over it, and never for the count.

/// Words that point at things instead of naming them.
const FUNCTION_WORDS: &[&str] = &[
    "it",
    "its",
    "itself",
    "they",
    "them",
    "their",
    "themselves",
    "he",
    "she",
    "his",
    "her",
    "him",
    "we",
    "you",
    "that",
    "this",
    "these",
    "those",
    "which",
    "who",
    "whom",
    "whose",
    "what",
    "whatever",
    "whichever",
    "whoever",
    "where",
    "wherever",
    "when",
    "whenever",
    "how",
    "why",
    "such",
    "one",
    "ones",
    "other",
    "others",
    "another",
    "some",
    "any",
    "none",
    "nothing",
    "anything",
    "something",
    "each",
    "all",
    "both",
    "either",
    "neither",
    "same",
    "so",
    "has",
    "have",
    "had",
    "do",
    "does",
    "did",
    "not",
    "no",
    "nor",
    "there",
    "here",
    "else",
];

/// Phrases that stand where a noun belongs, in sentences of any length.
const HEADLESS: &[&str] = &[
    "another one",
    "are none",
    "as here",
    "as in",
    "as there",
    "asked for",
    "go on",
    "goes on",
    "had none",
    "has none",
    "have none",
    "is none",
    "tell of",
    "tells of",
    "that of",
    "that one",
    "the one that",
    "the ones that",
    "the other one",
    "those of",
    "those that",
];

/// The most headless phrases in 10,000 words.
const MOST_HEADLESS: usize = 8;

/// A sentence of at least this many words is a riddle if a third of them are function words.
const RIDDLE: usize = 12;

/// The most riddles among 1,000 sentences of at least [`RIDDLE`] words.
const MOST_RIDDLES: usize = 15;

/// The counts over some texts.
#[derive(Clone, Default, Debug)]
pub(crate) struct Counts {
    /// Words.
    pub(crate) words: usize,
    /// `what`, `whatever` and `whoever`.
    pub(crate) whats: usize,
    /// Sentences with a phrase of [`HEADLESS`], each with its place, once for each phrase.
    pub(crate) headless: Vec<String>,
    /// Sentences of [`RIDDLE`] words or more.
    pub(crate) sentences: usize,
    /// The riddles, each with its place.
    pub(crate) riddles: Vec<String>,
}

impl Counts {
    /// Adds the counts of one file: of doc comments in Rust, of paragraphs in Markdown.
    pub(crate) fn add(&mut self, path: &str, text: &str) {
        let paragraphs =
            if path.ends_with(".rs") { doc_paragraphs(text) } else { manual_paragraphs(text) };
        for (line, paragraph) in paragraphs {
            self.add_paragraph(&format!("{path}:{line}"), &without_code(&paragraph));
        }
    }

    fn add_paragraph(&mut self, place: &str, paragraph: &str) {
        for sentence in sentences(paragraph) {
            let words: Vec<String> = words(sentence).map(str::to_lowercase).collect();
            self.words += words.len();
            let is_what = |w: &&String| matches!(w.as_str(), "what" | "whatever" | "whoever");
            self.whats += words.iter().filter(is_what).count();
            let found = || format!("{place}: {sentence}");
            self.headless.extend((0..headless_phrases(&words)).map(|_| found()));
            if words.len() < RIDDLE {
                continue;
            }
            self.sentences += 1;
            let function = words.iter().filter(|w| FUNCTION_WORDS.contains(&w.as_str())).count();
            if 3 * function >= words.len() {
                self.riddles.push(found());
            }
        }
    }

    /// The bars that the counts miss, as sentences.
    pub(crate) fn findings(&self, folder: &str) -> Vec<String> {
        let Counts { words, whats, headless, sentences, riddles } = self;
        let mut findings = Vec::new();
        if 1000 * whats > 2 * words {
            findings.push(format!("{folder}: {whats} of {words} words are `what` or `whoever`"));
        }
        if 10_000 * headless.len() > MOST_HEADLESS * words {
            let (count, listed) = (headless.len(), headless.join("\n    "));
            findings
                .push(format!("{folder}: {count} headless phrases in {words} words\n    {listed}"));
        }
        if 1000 * riddles.len() > MOST_RIDDLES * sentences {
            let (count, listed) = (riddles.len(), riddles.join("\n    "));
            findings.push(format!(
                "{folder}: {count} of {sentences} sentences are riddles\n    {listed}"
            ));
        }
        findings
    }
}

/// The number of phrases of [`HEADLESS`] in a sentence.
fn headless_phrases(words: &[String]) -> usize {
    let begins = |at: usize, phrase: &&&str| {
        let mut rest = words[at..].iter();
        phrase.split(' ').all(|word| rest.next().is_some_and(|next| next == word))
    };
    (0..words.len()).map(|at| HEADLESS.iter().filter(|phrase| begins(at, phrase)).count()).sum()
}

/// The paragraphs of doc comments, each with its line. Code blocks and tables are left out.
fn doc_paragraphs(text: &str) -> Vec<(usize, String)> {
    paragraphs(text.lines().map(|line| {
        let line = line.trim_start();
        let doc = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"))?;
        Some(doc.strip_prefix(' ').unwrap_or(doc))
    }))
}

/// The paragraphs of a manual.
fn manual_paragraphs(text: &str) -> Vec<(usize, String)> {
    paragraphs(text.lines().map(Some))
}

/// Joins lines to paragraphs. `None` is a line that holds no prose.
fn paragraphs<'t>(lines: impl Iterator<Item = Option<&'t str>>) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let (mut is_open, mut in_code) = (false, false);
    for (line, number) in lines.zip(1..) {
        let text = line.unwrap_or("");
        // A comment may end within a code block, and the next comment begins outside.
        in_code &= line.is_some();
        if text.trim_start().starts_with("```") {
            (in_code, is_open) = (!in_code, false);
            continue;
        }
        let is_prose = !in_code && !text.trim().is_empty();
        if !is_prose || text.starts_with(['#', '|']) || text.starts_with("    ") {
            is_open = false;
            continue;
        }
        let is_item = text.trim_start().starts_with(['-', '*'])
            || text.trim_start().split_once(". ").is_some_and(|(n, _)| n.parse::<u32>().is_ok());
        match found.last_mut().filter(|_| is_open && !is_item) {
            Some((_, paragraph)) => {
                paragraph.push(' ');
                paragraph.push_str(text.trim());
            }
            None => found.push((number, text.trim().to_owned())),
        }
        is_open = true;
    }
    found
}

/// The text with each piece of code as one word, and links without their targets.
fn without_code(paragraph: &str) -> String {
    let mut text = String::new();
    for (index, part) in paragraph.split('`').enumerate() {
        text.push_str(if index % 2 == 0 { part } else { "Code" });
    }
    // `[text](target)`: the target is no prose.
    let mut plain = String::new();
    let mut rest = text.as_str();
    while let Some((before, after)) = rest.split_once("](") {
        plain.push_str(before);
        rest = after.split_once(')').map_or("", |(_, behind)| behind);
    }
    plain.push_str(rest);
    plain
}

/// Splits behind full stops, question marks and exclamation marks that blanks follow.
fn sentences(paragraph: &str) -> impl Iterator<Item = &str> {
    let mut rest = paragraph;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = rest
            .match_indices(['.', '?', '!'])
            .find_map(|(at, _)| rest[at + 1..].starts_with(char::is_whitespace).then_some(at + 1));
        let (sentence, behind) = rest.split_at(end.unwrap_or(rest.len()));
        rest = behind;
        Some(sentence.trim())
    })
}

fn words(sentence: &str) -> impl Iterator<Item = &str> {
    let is_letter = |c: char| c.is_ascii_alphabetic() || c == '\'' || c == '-';
    let words = sentence.split(move |c| !is_letter(c));
    words.filter(|word| word.starts_with(|c: char| c.is_ascii_alphabetic()))
}

#[test]
fn cryptic_prose_is_found() {
    let cryptic = "//! It is told of by such others which have what they do not have there, as \
                   one has of it.\n";
    let mut counts = Counts::default();
    counts.add("a.rs", cryptic);
    assert_eq!((counts.sentences, counts.riddles.len()), (1, 1), "{counts:?}");
    let mut counts = Counts::default();
    counts.add("a.rs", "/// That of the entry, if it has none.\n");
    assert_eq!((counts.headless.len(), counts.riddles.len()), (2, 0), "{counts:?}");
    assert_eq!(counts.findings("a").len(), 1, "{counts:?}");
    let mut counts = Counts::default();
    counts.add("b.md", "What whoever does.\n\n```\nwhat what\n```\n`what` is code.\n");
    assert_eq!((counts.words, counts.whats), (6, 2), "{counts:?}");
    assert_eq!(counts.findings("b").len(), 1);
}
