//! The laws of the text form, and located errors for invalid texts.

use osier_ir::Module;
use osier_ir::text::{MAX_ERRORS, ParseError, parse_module, print_module};
use osier_ir::verifier::verify_module;

mod printed;
mod random;
mod refused;

/// A module with every kind of item and of operand syntax, in the form that the printer writes.
pub(crate) const SAMPLE: &str = r#"memory @mem 1 16
memory @"weird name\u{1b}" 0
table @t 10
global @g: mut i32 = 5
global @pi: f64 = 3.141592653589793
export "run \"me\"" @main
start @init
import func @fd_write "wasi_snapshot_preview1" "fd_write" (i32, i32) -> i32
import func @hash "env" "hash" (i32) -> i64 effect(pure)
import func @log "env" "log" (i32) -> () effect(outside)
later func @"to come" (i64) -> i64
func @init() -> () {
block0:
  return
}
func @main(%a: i32, %b: i64) -> (i32, i64) {
entry:
  %x = const.i32 -5
  %f = const.f64 1.5
  %nan = const.f32 nan:0x7fc00001
  %inf = const.f32 -inf
  %zero = const.f64 -0.0
  %sum = add.i32 %a, %x
  %wide = sextend.i64 %sum
  %v = load.i32 @mem[%a + 8]
  %w = uload8.i64 @mem[%a]
  store8.i32 @mem[%a + 3], %v
  %size = memory_size @mem
  %before = memory_grow @mem, %size
  %g = global_get.i32 @g
  global_set.i32 @g, %v
  %r = call @fd_write(%a, %x)
  %h = call_pure.i64 @hash(%a)
  %again = call_reads.i64 @hash(%a)
  call_outside @log(%a)
  %p, %q = call @main(%a, %b)
  call @init()
  %i = call_indirect @t (i32) -> i32 [%a](%x)
  call_indirect @t () -> () [%a]()
  %s = select.i32 %a, %x, %later
  br_if %s, then(%a), "1 odd"
then(%c: i32):
  switch %c, [then(%a), other], default done(%c, %b)
other:
  switch %a, [], default done(%a, %b)
"1 odd":
  %later = const.i32 7
  jump last
done(%m: i32, %n: i64):
  return %m, %n
last:
  trap user7
}
elem @t 1 [@main, null]
data @mem 1024 "escaped\00\ffbytes\22\5c"
"#;

pub(crate) fn parse(text: &str) -> Module {
    parse_module(text).unwrap_or_else(|errors| panic!("{}\n{text}", errors[0]))
}

pub(crate) fn errors(text: &str) -> Vec<ParseError> {
    match parse_module(text) {
        Ok(_) => panic!("parses: {text}"),
        Err(errors) => errors,
    }
}

/// Properties of every text: each error lies within the text, and a text that parses prints as a
/// fixpoint and can be verified.
pub(crate) fn check_any_text(text: &str) {
    match parse_module(text) {
        Ok(module) => {
            let printed = print_module(&module);
            assert_eq!(print_module(&parse(&printed)), printed);
            // The module may be ill-typed. The verifier must not panic.
            verify_module(&module);
        }
        Err(errors) => check_places(text, &errors),
    }
}

pub(crate) fn check_places(text: &str, errors: &[ParseError]) {
    assert!(!errors.is_empty() && errors.len() <= MAX_ERRORS);
    let places: Vec<(u32, u32)> = errors.iter().map(|e| (e.line(), e.column())).collect();
    assert!(places.is_sorted(), "errors come in the order of the text");
    let lines: Vec<&str> = text.strip_prefix('\u{feff}').unwrap_or(text).split('\n').collect();
    for error in errors {
        let line = lines[error.line() as usize - 1];
        assert!(error.column() as usize <= line.chars().count() + 1, "{error}");
        let shown = error.to_string();
        assert_eq!(shown.lines().count(), 3, "{shown}");
        assert!(shown.len() < 2000, "an error fits a screen");
    }
}
