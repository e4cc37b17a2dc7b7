//! What inlining keeps of the blocks that it copies. Its choices are tested where its versions are
//! proved.

use super::module;
use ir::edit::{Fuel, apply, check_replay};
use passes::{Callers, Inline, InlinePolicy};

/// `@f` calls `@g`, which has a cold block, from a cold block and from a hot one.
const TEXT: &str = "
func @g(%n: i32) -> i32 {
entry:
  br_if %n, aside, on(%n)
aside cold:
  %two = add.i32 %n, %n
  jump on(%two)
on(%r: i32):
  return %r
}
func @f(%n: i32) -> i32 {
entry:
  br_if %n, slow, fast
slow cold:
  %x = call @g(%n)
  %y = add.i32 %x, %n
  jump end(%y)
fast:
  %z = call @g(%n)
  jump end(%z)
end(%r: i32):
  return %r
}";

/// All code of a call in a cold block is cold, with the code behind the call. Elsewhere, copies of
/// cold blocks are.
#[test]
fn cold_blocks_stay_cold() {
    let (module, func) = module(TEXT);
    let base = module.body(func).expect("a body");
    let callers = Callers::new(&module);
    let policy =
        InlinePolicy { size: 100, growth: 10_000, allowance: 1_000, ..InlinePolicy::default() };
    let pass = Inline { callers: &callers, func, policy, counts: None };
    let (after, log) = apply(base, &pass, &mut Fuel::UNLIMITED.clone()).into_parts();
    assert_eq!(check_replay(base, &log, &after), Ok(()));
    let block = |name| after.blocks().find(|block| after.block_name(*block) == Some(name));
    let [slow, fast] = ["slow", "fast"].map(|name| block(name).expect("it stays"));
    // The copies of the three blocks of `@g` stand in front of the code behind each call.
    let behind = |first| after.blocks().skip_while(move |block| *block != first).take(5);
    let cold = |first| behind(first).filter(|block| after.is_cold(*block)).count();
    assert_eq!(after.block_count(), 12);
    assert_eq!([cold(slow), cold(fast)], [5, 1]);
}
