//! Damaged files: none makes the reader fall over, and one that can still be read loses nothing but the verdict that is
//! changed. Always the same files: the generator starts from a fixed number. `NIGHTLOOP_PRD_MUTANTS=100000 cargo test
//! --test prd mutants` makes more of them.

use nightloop::model::prd::{Change, Prd, merge};

/// How many, unless the environment says otherwise.
const MUTANTS: usize = 10_000;

/// Small files of every shape; the long ones are not more different, only slower.
const SEEDS: &[&str] = &[
    "{\"phases\": [{\"tasks\": [{\"id\": 1, \"title\": \"t\"}]}, {\"tasks\": [{\"id\": 2,\n \"title\": \"u\", \"deps\": [1]}]}]}",
    "[{\"id\": \"f\", \"behavior\": \"t\", \"verification\": \"npm test\", \"state\": \"failing\", \"evidence\": \"\"}, {\"id\": 1, \"title\": \"t\", \"state\": \"passing\"}]",
    "{\"version\": 1, \"items\": [{\"id\": \"A-1\", \"title\": \"a\", \"acceptance\": [\"x\"], \"passes\": false, \"notes\": \"\"}]}\n",
    "\u{feff}{\r\n  \"branchName\": \"b\",\r\n  \"userStories\": [\r\n    {\"id\": \"é\", \"description\": \"\\u00e9\\n\", \"priority\": 1.50, \"passes\": true}\r\n  ]\r\n}",
    "[{\"description\": \"d\", \"steps\": [], \"complete\": true}, {\"description\": \"e\", \"complete\": false}]",
    "{\"phases\": [{\"tasks\": [{\"id\": 1, \"title\": \"t\", \"status\": \"pending\"}]}, {\"tasks\": [{\"id\": 2, \"title\": \"u\", \"status\": \"done\"}]}]}",
    "{\"features\": [{\"id\": 1}], \"tasks\": [{\"id\": 1, \"name\": \"n\", \"status\": \"done\", \"passes\": true, \"priority\": \"high\"}]}",
    "\t[\n\t{\"story\":\"s\",\"passes\":false,\"notes\":[\"n\"]},\n\t{\"story\":\"\\\\\\\"\",\"passes\":true,\"notes\":null}\n\t]\n\n",
    "{\"prd\": {\"stories\": [{\"id\": \"x\", \"title\": \"t\", \"done\": false, \"tests\": [{\"passes\": true}]}], \"meta\": {}}}",
    "{\"items\": [{\"id\": \"\u{1f600}\", \"title\": \"t\", \"passes\": true, \"completed\": \"2026-01-01\", \"notes\": {}}], \"backlog\": []}",
];

/// Pieces whose place in a file matters most.
const PIECES: &[&str] = &[
    "\"passes\": null",
    "\"passes\": true,",
    "\"status\": \"done\"",
    "\"id\": 1,",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\\",
    "null",
    "true",
    "-0.0e1",
    "\u{feff}",
    "\n",
    "\u{0}",
    "<<<<<<< HEAD\n",
    "\"items\": [],",
    "\"\\ud83d\"",
    "//",
];

/// xorshift64*: enough to wander, and the same on every machine.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let number = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        usize::try_from(number).unwrap() % limit.max(1)
    }
}

/// Damage that a file may survive: a letter, a blank, a word for another.
fn scratch(bytes: &mut Vec<u8>, numbers: &mut Numbers) {
    const WORDS: &[(&str, &str)] = &[
        ("true", "false"),
        ("false", "true"),
        ("\"done\"", "\"todo\""),
        ("1", "2"),
        ("\"t\"", "7"),
        ("passes", "passed"),
    ];
    let at = numbers.below(bytes.len());
    let Some(near) = bytes.get(at).copied() else { return };
    let (word, other) = WORDS[numbers.below(WORDS.len())];
    let found = bytes.windows(word.len()).skip(at).position(|window| window == word.as_bytes());
    match (near, found) {
        (b',' | b':' | b'{' | b'[' | b' ', _) => bytes.insert(at + 1, b" \t\r\n"[numbers.below(4)]),
        (_, Some(offset)) => drop(bytes.splice(at + offset..at + offset + word.len(), other.bytes())),
        (b'a'..=b'z' | b'0'..=b'9', None) => bytes[at] = b'a' + u8::try_from(numbers.below(26)).unwrap(),
        _ => {}
    }
}

fn mutate(bytes: &mut Vec<u8>, numbers: &mut Numbers) {
    let at = numbers.below(bytes.len());
    let end = (at + 1 + numbers.below(24)).min(bytes.len());
    let start = at.min(end);
    match numbers.below(8) {
        0 if start < end => bytes[start] ^= 1 << numbers.below(8),
        1 => bytes.truncate(at),
        2 => drop(bytes.drain(start..end)),
        3 => {
            let piece = bytes[start..end].to_vec();
            let to = numbers.below(bytes.len());
            bytes.splice(to..to, piece);
        }
        4 if start < end => bytes.swap(start, end - 1),
        5 | 6 => {
            let piece = PIECES[numbers.below(PIECES.len())].bytes();
            bytes.splice(start..start, piece);
        }
        7 if start < end => bytes[start] = u8::try_from(numbers.below(256)).unwrap(),
        _ => {}
    }
}

/// The text without the values that say whether this item passes.
fn without_verdict(prd: &Prd, index: usize) -> String {
    let mut spans = prd.items()[index].verdict_spans();
    spans.sort();
    let mut text = prd.text().to_owned();
    for span in spans.iter().rev() {
        text.replace_range(span.start..span.end, "");
    }
    text
}

/// The text without the members in which every item says whether it passes.
fn without_new_verdicts(prd: &Prd) -> String {
    let mut text = prd.text().to_owned();
    let mut verdicts: Vec<_> = prd.items().iter().map(|item| &item.verdicts()[0]).collect();
    verdicts.sort_by_key(|verdict| verdict.value);
    for verdict in verdicts.iter().rev() {
        let comma = text[..verdict.key_span.start].rfind(',').unwrap();
        text.replace_range(comma..verdict.value.end, "");
    }
    text
}

fn survives_a_change(prd: &Prd, index: usize) {
    let item = &prd.items()[index];
    let text = prd.with_item(&item.id, &Change::passes(!item.passes)).unwrap();
    let again =
        Prd::read(text.as_bytes()).unwrap_or_else(|error| panic!("{error}\nfrom {:?}\nto {text:?}", prd.text()));
    if prd.is_silent() {
        assert_eq!(prd.text(), without_new_verdicts(&again));
    } else {
        assert_eq!(without_verdict(prd, index), without_verdict(&again, index));
    }
    for (at, (before, after)) in prd.items().iter().zip(again.items()).enumerate() {
        assert_eq!(before.passes != after.passes, at == index, "{text:?}");
        assert!(before.id == after.id && before.asks_the_same(after) && before.notes == after.notes);
    }
    let noted = prd.with_item(&item.id, &Change::default().with_note("n"));
    if let Ok(noted) = noted {
        let (head, tail) = (&prd.text()[..item.span.start], &prd.text()[item.span.end..]);
        assert!(noted.starts_with(head) && noted.ends_with(tail));
        let noted = Prd::read(noted.as_bytes()).unwrap();
        assert!(noted.items()[index].notes.as_deref().is_some_and(|notes| notes.ends_with('n')));
    }
}

/// A file, and a change of its first item.
fn first_turned(seed: &str) -> (Prd, String, bool) {
    let base = Prd::read(seed.as_bytes()).unwrap();
    let (id, passes) = (base.items()[0].id.clone(), !base.items()[0].passes);
    (base, id, passes)
}

#[test]
fn damaged_files_lose_nothing_else() {
    let mutants: usize = std::env::var("NIGHTLOOP_PRD_MUTANTS").map_or(MUTANTS, |count| count.parse().unwrap());
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let writes: Vec<(Prd, String, bool)> = SEEDS.iter().map(|seed| first_turned(seed)).collect();
    let mut damaged_and_loaded = 0;
    for count in 0..mutants {
        let seed = SEEDS[count % SEEDS.len()];
        let mut bytes = seed.as_bytes().to_vec();
        for _ in 0..=numbers.below(3) {
            if numbers.below(3) == 0 {
                mutate(&mut bytes, &mut numbers);
            } else {
                scratch(&mut bytes, &mut numbers);
            }
        }
        match Prd::read(&bytes) {
            Ok(prd) => {
                damaged_and_loaded += usize::from(bytes != seed.as_bytes());
                survives_a_change(&prd, numbers.below(prd.items().len()));
                // Somebody else's damage never takes our change with it.
                let (base, id, passes) = &writes[count % SEEDS.len()];
                if let Ok(merged) = merge(base, id, &Change::passes(*passes), &bytes) {
                    let merged = Prd::read(merged.text.as_bytes()).unwrap();
                    assert_eq!(merged.item(id).unwrap().passes, *passes);
                }
            }
            Err(error) => assert!(error.to_string().len() < 2000 && error.line > 0 && error.column > 0),
        }
    }
    // Were nearly all of them refused, this would prove little.
    println!("{mutants} damaged files, {damaged_and_loaded} of them still read");
    assert!(damaged_and_loaded > mutants / 10, "{damaged_and_loaded}");
}
