//! Inputs that reach a limit of a pass: at the limit the rewrite is made, beyond it the code stays.

use super::run;

/// Whether a pass changes a function. `run` has compared the log with the function.
fn rewrites(pass: &str, text: &str) -> bool {
    !run(pass, text).1.is_empty()
}

/// A store, `pure` operations, and a store that covers the first.
fn covered_behind_operations(pure: usize) -> String {
    let operations: String = (0..pure).map(|n| format!("  %p{n} = add.i32 %a, %x\n")).collect();
    format!(
        "func @f(%a: i32, %x: i32) {{\nentry:\n  store.i32 @m[%a], %x\n{operations}  \
         store.i32 @m[%a], %a\n  return\n}}"
    )
}

#[test]
fn dse_examines_so_many_instructions() {
    assert!(rewrites("dse", &covered_behind_operations(63)));
    assert!(!rewrites("dse", &covered_behind_operations(64)));
}

/// A store behind a load of its place, and `arms` successors that each cover the store.
fn covered_in_arms(arms: usize) -> String {
    let targets: Vec<String> = (0..arms).map(|n| format!("b{n}")).collect();
    let blocks: String =
        (0..arms).map(|n| format!("b{n}:\n  store.i32 @m[%a], %a\n  return\n")).collect();
    let (cases, default) = (targets[..arms - 1].join(", "), &targets[arms - 1]);
    format!(
        "func @f(%a: i32, %x: i32) {{\nentry:\n  %l = load.i32 @m[%a]\n  store.i32 @m[%a], %x\n  \
         switch %x, [{cases}], default {default}\n{blocks}}}"
    )
}

#[test]
fn dse_follows_so_many_blocks() {
    assert!(rewrites("dse", &covered_in_arms(8)));
    assert!(!rewrites("dse", &covered_in_arms(9)));
}

/// An operation with `count` uses in a single arm of a branch.
fn used_in_one_arm(count: usize) -> String {
    let uses: String =
        (0..count).map(|n| format!("  store.i32 @m[%a + {}], %s\n", 4 * n)).collect();
    format!(
        "func @f(%a: i32, %x: i32) {{\nentry:\n  %s = mul.i32 %a, %x\n  br_if %x, arm, end\narm:\n\
         {uses}  return\nend:\n  return\n}}"
    )
}

#[test]
fn sink_counts_so_many_users() {
    assert!(rewrites("sink", &used_in_one_arm(32)));
    assert!(!rewrites("sink", &used_in_one_arm(33)));
}

/// An operation with a use in each of `depth` nested arms, and a use behind the outermost arm.
fn used_in_nested_arms(depth: usize) -> String {
    let mut text =
        "func @f(%a: i32, %x: i32) {\nentry:\n  %s = mul.i32 %a, %x\n  br_if %x, arm1, end\n"
            .to_owned();
    for n in 1..depth {
        let other = if n == 1 { "last" } else { "end" };
        text += &format!("arm{n}:\n  br_if %a, arm{}, {other}\n", n + 1);
    }
    text + &format!(
        "arm{depth}:\n  store.i32 @m[%a], %s\n  return\nlast:\n  store.i32 @m[%x], %s\n  return\n\
         end:\n  return\n}}"
    )
}

#[test]
fn sink_examines_so_many_arms() {
    assert!(rewrites("sink", &used_in_nested_arms(16)));
    assert!(!rewrites("sink", &used_in_nested_arms(17)));
}

/// A byte combined with further bytes `levels` times, and a mask of a byte.
fn masked_behind(levels: usize) -> String {
    let params: String = (1..=levels).map(|n| format!(", %b{n}: i32")).collect();
    let steps: String = (1..=levels)
        .map(|n| format!("  %y{n} = and.i32 %b{n}, %byte\n  %r{n} = or.i32 %r{}, %y{n}\n", n - 1))
        .collect();
    format!(
        "func @f(%b0: i32{params}) -> i32 {{\nentry:\n  %byte = const.i32 255\n  \
         %r0 = and.i32 %b0, %byte\n{steps}  %masked = and.i32 %r{levels}, %byte\n  \
         return %masked\n}}"
    )
}

#[test]
fn simplify_follows_so_many_levels() {
    // The constant of the first mask is a level, too.
    assert!(rewrites("simplify", &masked_behind(3)));
    assert!(!rewrites("simplify", &masked_behind(4)));
}

/// A row of blocks with an operation each.
fn row(jumps: usize) -> String {
    let blocks: String = (0..jumps)
        .map(|n| format!("b{n}:\n  %p{n} = add.i32 %a, %a\n  jump b{}\n", n + 1))
        .collect();
    format!("func @f(%a: i32) -> i32 {{\n{blocks}b{jumps}:\n  return %a\n}}")
}

/// The number of jumps that are left of a row.
fn jumps_left(jumps: usize) -> usize {
    run("cfg_clean", &row(jumps)).0.matches("jump ").count()
}

#[test]
fn cfg_clean_merges_rows_up_to_so_many_jumps() {
    assert_eq!(jumps_left(24), 0);
    assert_eq!(jumps_left(25), 1);
    assert_eq!(jumps_left(100), 4);
}

/// Levels of a dead edge around a loop, each dead because the parameter behind the loop of the
/// level before is a copy: two products are then one, and their difference decides the next branch.
fn dead_edges(levels: usize) -> String {
    let mut text = "func @f(%n: i32) -> i32 {\nentry:\n  %one = const.i32 1\n  \
        %c0 = sub.i32 %n, %n\n  jump a0\n"
        .to_owned();
    for k in 0..levels {
        let next = k + 1;
        text += &format!(
            "a{k}:\n  br_if %c{k}, join{k}(%n, %one), arm{k}\narm{k}:\n  jump head{k}(%n)\n\
             head{k}(%x{k}: i32):\n  %y{k} = add.i32 %x{k}, %one\n  \
             %t{k} = mul.i32 %x{k}, %n\n  br_if %y{k}, head{k}(%y{k}), out{k}\nout{k}:\n  \
             jump join{k}(%x{k}, %t{k})\njoin{k}(%z{k}: i32, %w{k}: i32):\n  \
             %s{k} = mul.i32 %z{k}, %n\n  %c{next} = sub.i32 %s{k}, %w{k}\n  jump a{next}\n"
        );
    }
    text + &format!("a{levels}:\n  return %c{levels}\n}}")
}

#[test]
fn gvn_numbers_a_function_again_so_often() {
    // Each level keeps the branch of its loop.
    let branches = |levels: usize| run("gvn", &dead_edges(levels)).0.matches("br_if").count();
    assert_eq!(branches(3), 3);
    assert_eq!(branches(4), 4 + 1);
}

/// A sum with `count` stores above a block that computes it once more, in another way, and stores
/// the sum itself behind.
fn sum_with_uses(count: usize) -> String {
    let uses: String =
        (0..count).map(|n| format!("  store.i32 @m[%a + {}], %s\n", 4 * n)).collect();
    format!(
        "func @f(%a: i32, %b: i32) -> i32 {{\nentry:\n  %s = add.i32 %b, %b\n{uses}  \
         %x = sub.i32 %s, %a\n  br_if %b, later, end\nlater:\n  %y = add.i32 %x, %a\n  \
         store.i32 @m[%b], %s\n  return %y\nend:\n  return %x\n}}"
    )
}

#[test]
fn gvn_counts_so_many_users() {
    // The difference is a user as well.
    assert!(rewrites("gvn", &sum_with_uses(14)));
    assert!(!rewrites("gvn", &sum_with_uses(15)));
}
