//! Hot loops. Each is a function `@f(%n: i64, %stop: i64) -> i64` with a loop of `%n` iterations.
//! The header computes a value `%guard` that is 1 in iteration `%stop`.

/// A loop: its name, its variables, and its body. `%i` counts iterations, and `%at` is the address
/// of element `%i & 1023` of the array of words at 0.
pub(crate) struct Kernel {
    pub(crate) name: &'static str,
    /// Type and initial bits of each variable.
    pub(crate) variables: Vec<(&'static str, String)>,
    pub(crate) body: String,
    /// The values of the variables in the next iteration.
    pub(crate) next: Vec<String>,
    /// Further declarations of the module.
    pub(crate) more: &'static str,
}

fn kernel(
    name: &'static str,
    variables: &[(&'static str, &str)],
    body: &str,
    next: &[&str],
) -> Kernel {
    Kernel {
        name,
        variables: variables.iter().map(|(ty, bits)| (*ty, (*bits).to_owned())).collect(),
        body: body.to_owned(),
        next: next.iter().map(|name| (*name).to_owned()).collect(),
        more: "",
    }
}

/// A loop of `width` operations, each on the result of its predecessor; `mul` makes an iteration
/// longer.
fn wide(name: &'static str, width: usize, operation: &str) -> Kernel {
    let variables = (0..width).map(|k| ("i64", (k * 7 + 3).to_string())).collect();
    let mut body = String::new();
    for k in 0..width {
        body += &format!("  %s{k} = {operation}.i64 %v{k}, %v{}\n", (k + 1) % width);
        body += &format!("  %t{k} = xor.i64 %s{k}, %i\n");
    }
    Kernel { name, variables, body, next: (0..width).map(|k| format!("%t{k}")).collect(), more: "" }
}

impl Kernel {
    /// The module, with `padding` stores before the loop, which move its code.
    pub(crate) fn text(&self, padding: usize) -> String {
        let mut text =
            String::from("memory @m 1\nglobal @pad: mut i64 = 0\nglobal @result: mut i64 = 0\n");
        text += self.more;
        text += "func @f(%n: i64, %stop: i64) -> i64 {\nentry:\n  %zero = const.i64 0\n";
        for k in 0..padding {
            text += &format!("  %pad{k} = const.i64 {k}\n  global_set.i64 @pad, %pad{k}\n");
        }
        for (k, (ty, bits)) in self.variables.iter().enumerate() {
            text += &format!("  %first{k} = const.{ty} {bits}\n");
        }
        let list = |item: &dyn Fn(usize) -> String| -> String {
            (0..self.variables.len()).map(|k| format!(", {}", item(k))).collect()
        };
        text += &format!("  jump head(%zero{})\n", list(&|k| format!("%first{k}")));
        text +=
            &format!("head(%i: i64{}):\n", list(&|k| format!("%v{k}: {}", self.variables[k].0)));
        text += "  %guard = eq.i64 %i, %stop\n";
        text += "  %mask = const.i64 1023\n  %low = and.i64 %i, %mask\n  %three = const.i64 3\n";
        text += "  %scaled = shl.i64 %low, %three\n  %at = wrap.i32 %scaled\n";
        text += &self.body;
        text += "  %one = const.i64 1\n  %j = add.i64 %i, %one\n  %more = ult.i64 %j, %n\n";
        text += &format!("  br_if %more, head(%j{}), done\n", list(&|k| self.next[k].clone()));
        text += "done:\n";
        let mut result = "%j".to_owned();
        for (k, (ty, _)) in self.variables.iter().enumerate() {
            let word = match *ty {
                "i64" => self.next[k].clone(),
                "i32" => {
                    text += &format!("  %w{k} = uextend.i64 {}\n", self.next[k]);
                    format!("%w{k}")
                }
                _ => {
                    text += &format!("  %w{k} = bitcast.i64 {}\n", self.next[k]);
                    format!("%w{k}")
                }
            };
            text += &format!("  %r{k} = xor.i64 {result}, {word}\n");
            result = format!("%r{k}");
        }
        text += &format!("  return {result}\n}}\n");
        text
    }
}

/// All kernels.
pub(crate) fn kernels() -> Vec<Kernel> {
    let mut all = short();
    all.extend(long());
    all
}

/// Loops with iterations of about a nanosecond or less.
fn short() -> Vec<Kernel> {
    vec![
        kernel(
            "sum",
            &[("i64", "0")],
            "  %x = load.i64 @m[%at]\n  %s = add.i64 %v0, %x\n",
            &["%s"],
        ),
        kernel(
            "daxpy",
            &[("f64", "1.5")],
            "  %x = load.f64 @m[%at + 16384]\n  %p = fmul.f64 %x, %v0\n  %y = load.f64 @m[%at + 24576]\n  %q = fadd.f64 %y, %p\n  store.f64 @m[%at + 32768], %q\n",
            &["%v0"],
        ),
        kernel("copy", &[], "  %x = load.i64 @m[%at]\n  store.i64 @m[%at + 8192], %x\n", &[]),
        kernel(
            "sieve",
            &[("i32", "0")],
            "  %mk = const.i32 32767\n  %st = const.i32 37\n  %b = const.i32 1\n  store8.i32 @m[%v0 + 16384], %b\n  %p = add.i32 %v0, %st\n  %q = and.i32 %p, %mk\n",
            &["%q"],
        ),
        wide("wide5", 5, "add"),
        wide("wide8", 8, "add"),
        wide("wide13", 13, "add"),
    ]
}

/// Loops with longer iterations.
fn long() -> Vec<Kernel> {
    let mut call = kernel(
        "call",
        &[("i64", "1")],
        "  %x = load.i64 @m[%at]\n  %y = call @g(%v0, %x)\n",
        &["%y"],
    );
    call.more = "func @g(%a: i64, %b: i64) -> i64 {\nentry:\n  %c = xor.i64 %a, %b\n  %k = const.i64 0x9e3779b97f4a7c15\n  %d = mul.i64 %c, %k\n  return %d\n}\n";
    let mut all = vec![
        kernel(
            "hash",
            &[("i64", "1")],
            "  %x = load.i64 @m[%at]\n  %y = xor.i64 %v0, %x\n  %k = const.i64 0x9e3779b97f4a7c15\n  %z = mul.i64 %y, %k\n  %r = const.i64 31\n  %t = rotl.i64 %z, %r\n  %u = mul.i64 %t, %k\n",
            &["%u"],
        ),
        kernel(
            "horner",
            &[("f64", "1.0")],
            "  %x = load.f64 @m[%at + 16384]\n  %a = const.f64 0.5\n  %p = fmul.f64 %v0, %a\n  %s = fadd.f64 %p, %x\n",
            &["%s"],
        ),
        kernel(
            "divide",
            &[("i64", "77777777777")],
            "  %x = load.i64 @m[%at]\n  %b = const.i64 3\n  %c = or.i64 %x, %b\n  %q = udiv.i64 %v0, %c\n  %k = const.i64 0x9e3779b97f4a7c15\n  %z = xor.i64 %q, %k\n",
            &["%z"],
        ),
        kernel(
            "crc",
            &[("i32", "-1")],
            "  %x = load.i32 @m[%at]\n  %y = xor.i32 %v0, %x\n  %m = const.i32 1023\n  %z = and.i32 %y, %m\n  %three32 = const.i32 3\n  %o = shl.i32 %z, %three32\n  %t = load.i32 @m[%o]\n  %e = const.i32 8\n  %u = ushr.i32 %y, %e\n  %w = xor.i32 %t, %u\n",
            &["%w"],
        ),
        kernel(
            "chase",
            &[("i32", "0")],
            "  %m = const.i32 8184\n  %x = load.i32 @m[%v0]\n  %y = and.i32 %x, %m\n  %z = load.i32 @m[%y]\n  %w = and.i32 %z, %m\n",
            &["%w"],
        ),
        kernel(
            "histogram",
            &[],
            "  %m = const.i32 56\n  %x = load.i32 @m[%at]\n  %y = and.i32 %x, %m\n  %c = load.i64 @m[%y + 40960]\n  %o = const.i64 1\n  %d = add.i64 %c, %o\n  store.i64 @m[%y + 40960], %d\n",
            &[],
        ),
        kernel(
            "xorshift",
            &[("i64", "88172645463325252"), ("i64", "0")],
            "  %a = const.i64 13\n  %b = shl.i64 %v0, %a\n  %c = xor.i64 %v0, %b\n  %d = const.i64 7\n  %e = ushr.i64 %c, %d\n  %f = xor.i64 %c, %e\n  %g = const.i64 17\n  %h = shl.i64 %f, %g\n  %l = xor.i64 %f, %h\n  %s = add.i64 %v1, %l\n",
            &["%l", "%s"],
        ),
        kernel(
            "mandel",
            &[("f64", "0.0"), ("f64", "0.0")],
            "  %c = const.f64 0.25\n  %xx = fmul.f64 %v0, %v0\n  %yy = fmul.f64 %v1, %v1\n  %d = fsub.f64 %xx, %yy\n  %nx = fadd.f64 %d, %c\n  %xy = fmul.f64 %v0, %v1\n  %x2 = fadd.f64 %xy, %xy\n  %ny = fadd.f64 %x2, %c\n",
            &["%nx", "%ny"],
        ),
        kernel(
            "sqrt",
            &[("f64", "100.0")],
            "  %x = load.f64 @m[%at + 16384]\n  %a = fsqrt.f64 %v0\n  %s = fadd.f64 %a, %x\n",
            &["%s"],
        ),
        kernel(
            "lookup",
            &[("i32", "0"), ("i64", "0")],
            "  %half = const.i32 512\n  %bit = const.i32 8191\n  %x = load.i32 @m[%v0]\n  %y = add.i32 %v0, %half\n  %b = and.i32 %y, %bit\n  %o = const.i32 8\n  %p = add.i32 %v0, %o\n  %q = and.i32 %p, %bit\n  %hun = const.i32 0\n  %less = slt.i32 %x, %hun\n  %n2 = select.i32 %less, %b, %q\n  %e = uextend.i64 %x\n  %s = add.i64 %v1, %e\n",
            &["%n2", "%s"],
        ),
        call,
        wide("wide5_mul", 5, "mul"),
        wide("wide8_mul", 8, "mul"),
        wide("wide13_mul", 13, "mul"),
        wide("wide20_mul", 20, "mul"),
    ];
    all.push(kernel(
        "mix64",
        &[("i64", "1")],
        "  %a = const.i64 33\n  %b = ushr.i64 %v0, %a\n  %c = xor.i64 %v0, %b\n  %k = const.i64 0xff51afd7ed558ccd\n  %d = mul.i64 %c, %k\n  %e = ushr.i64 %d, %a\n  %f = xor.i64 %d, %e\n  %l = const.i64 0xc4ceb9fe1a85ec53\n  %g = mul.i64 %f, %l\n  %h = xor.i64 %g, %i\n",
        &["%h"],
    ));
    all
}
