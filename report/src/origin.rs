//! Tells functions of libraries that compilers link with programs by their names.
//!
//! A user looks for the functions that they wrote. In a small program, the C library has more and
//! larger functions. The name section alone decides, since libraries come without debug info as a
//! rule. A wrong answer moves a line of a table, and changes no figure.

/// Whether a name is one of a C library, an allocator, or the runtime of a compiler: C reserves
/// names that begin with two underscores, or with one and a capital letter, and the names of the
/// standard library. Rust's and C++'s libraries have paths of their own. Cost: linear in the name.
pub fn is_of_library(name: &str) -> bool {
    // Names of the program that compilers derive from `main`.
    if matches!(name, "__original_main" | "__main_argc_argv" | "__main_void") {
        return false;
    }
    is_reserved(name)
        || PATHS.iter().any(|path| has_path(name, path))
        || MANGLED.iter().any(|path| name.starts_with(path))
        || crate_of_v0(name).is_some_and(|of| PATHS.contains(&of))
        || LIBRARY.contains(&name)
}

/// Whether C reserves the beginning of the name for the implementation. Mangled names of C++ and
/// Rust begin so, too, and are decided by their paths.
fn is_reserved(name: &str) -> bool {
    let mut chars = name.chars();
    let first = chars.next() == Some('_');
    let second = chars.next();
    let is_mangled = name.starts_with("_Z") || name.starts_with("_R");
    first && !is_mangled && second.is_some_and(|c| c == '_' || c.is_ascii_uppercase())
        || matches!(name, "_start" | "_initialize")
}

/// Whether a name is below a path: `std::io::read`, `<std::io::Error as core::fmt::Debug>::fmt`.
fn has_path(name: &str, path: &str) -> bool {
    let name = name.trim_start_matches(['<', '&', '[', '(']);
    name.strip_prefix(path).is_some_and(|rest| rest.starts_with("::"))
}

/// The crate in which a function is, by its name in Rust's mangling v0: for a method, the crate of
/// its `impl`. Example: `core` of `_RNvNtCs9ltgdHTiPiY_4core3fmt5write`. `None` for other names,
/// and for methods of traits on types without a path. Cost: linear in the name.
fn crate_of_v0(name: &str) -> Option<&str> {
    let is_digit = |c: char| c.is_ascii_digit();
    let mut path = name.strip_prefix("_R")?.trim_start_matches(is_digit);
    // Everything in front of the root of the path (`C`) says what kind of path it is.
    let root = loop {
        let (kind, rest) = path.split_at_checked(1)?;
        path = match kind {
            "C" => break without_disambiguator(rest)?,
            "N" => rest.get(1..)?,
            "I" | "Y" => rest,
            "M" | "X" => without_disambiguator(rest)?,
            _ => return None,
        };
    };
    let name = root.trim_start_matches(is_digit);
    let length: usize = root[..root.len() - name.len()].parse().ok()?;
    name.strip_prefix('_').unwrap_or(name).get(..length)
}

/// What follows a disambiguator of the mangling v0: `s`, a number, `_`.
fn without_disambiguator(path: &str) -> Option<&str> {
    match path.strip_prefix('s') {
        Some(rest) => rest.split_once('_').map(|(_, rest)| rest),
        None => Some(path),
    }
}

/// Paths of the libraries of Rust and C++.
const PATHS: [&str; 8] = [
    "std",
    "core",
    "alloc",
    "compiler_builtins",
    "dlmalloc",
    "hashbrown",
    "rustc_demangle",
    "wasi",
];

/// The same, mangled.
const MANGLED: [&str; 14] = [
    "_ZNSt",
    "_ZNKSt",
    "_ZSt",
    "_ZN3std",
    "_ZN4core",
    "_ZN5alloc",
    "_ZNK3std",
    "_ZNK4core",
    "_ZN17compiler_builtins",
    "_ZN8dlmalloc",
    "_Znw", // C++'s operators `new`, `new[]`, `delete`, `delete[]`
    "_Zna",
    "_Zdl",
    "_Zda",
];

/// Functions of C libraries for WebAssembly: of the standard, and large ones inside.
#[rustfmt::skip] // a line for each name is no easier to read
const LIBRARY: [&str; 164] = [
    "abort", "abs", "aligned_alloc", "atexit", "atof", "atoi", "atol", "atoll", "bcmp", "bsearch",
    "calloc", "ceil", "clock", "close", "copysign", "copysignl", "cos", "decfloat", "dispose_chunk",
    "dlcalloc", "dlfree", "dlmalloc", "dlmemalign", "dlposix_memalign", "dlrealloc",
    "emscripten_builtin_free", "emscripten_builtin_malloc", "exit", "exp", "fclose", "fcntl",
    "fflush", "fgets", "fileno", "floor", "fmod", "fmodl", "fmt_fp", "fmt_o", "fmt_u", "fmt_x",
    "fopen", "fprintf", "fputc", "fputs", "fread", "free", "frexp", "frexpl", "fseek", "fseeko",
    "ftell", "ftello", "fwrite", "getc", "getenv", "internal_memalign", "iprintf", "isalnum",
    "isalpha", "isatty", "isdigit", "isprint", "isspace", "iswdigit", "ldexp", "localtime", "log",
    "log10", "longjmp", "lseek", "malloc", "mbrtowc", "mbsinit", "mbtowc", "memchr", "memcmp",
    "memcpy", "memmove", "memrchr", "memset", "modf", "pad", "perror", "pop_arg", "posix_memalign",
    "pow", "printf", "printf_core", "putc", "putchar", "puts", "qsort", "qsort_r", "raise", "rand",
    "read", "realloc", "rewind", "round", "sbrk", "scalbn", "scalbnl", "scanexp", "setbuf",
    "setjmp", "setvbuf", "signal", "sin", "smoothsort", "sn_write", "snprintf", "sprintf", "sqrt",
    "srand", "sscanf", "store_int", "stpcpy", "stpncpy", "strcat", "strchr", "strchrnul", "strcmp",
    "strcoll", "strcpy", "strcspn", "strdup", "strerror", "strerror_r", "strlen", "strncat",
    "strncmp", "strncpy", "strndup", "strnlen", "strpbrk", "strrchr", "strspn", "strstr", "strtod",
    "strtof", "strtok", "strtol", "strtold", "strtoll", "strtoul", "strtoull", "strtox", "sysconf",
    "tan", "time", "tmalloc_small", "trinkle", "trunc", "try_realloc_chunk", "ungetc", "vfprintf",
    "vprintf", "vsnprintf", "vsprintf", "wcrtomb", "wctomb", "write", "writev",
];

#[cfg(test)]
mod tests {
    use super::is_of_library;

    #[test]
    fn names_of_libraries_and_of_programs_are_told_apart() {
        for name in [
            "printf_core",
            "dlmalloc",
            "__wasm_call_ctors",
            "_start",
            "__wasi_fd_write",
            "std::io::Write::write_all",
            "<core::fmt::Error as core::fmt::Debug>::fmt",
            "_ZN4core3fmt9Formatter3pad17h0123456789abcdefE",
            "_ZNSt3__26vectorIiE9push_backEi",
            "_Znwm",
            "_ZdaPvm",
            "_RNvNtCs9ltgdHTiPiY_4core3fmt5write",
            "_RNvMs_NtCsgEfFEXEyHLj_5alloc3vecINtB4_3VechE4pushCs1_4mine",
            "_RINvNtCs9ltgdHTiPiY_4core3mem4swapmE",
            "_Exit",
        ] {
            assert!(is_of_library(name), "{name}");
        }
        for name in [
            "main",
            "__original_main",
            "quick",
            "stdio",
            "standard::run",
            "_ZN4mine3runEv",
            "_RNvCs1_4mine4core",
            "_RNvXs0_Cs1_4mineNtB5_4TreeNtNtCs9ltgdHTiPiY_4core3fmt5Debug3fmt",
            "_RNvC",
            "_RNvCs_99core",
            "_R\u{e9}",
            "<mine::Tree as core::fmt::Debug>::fmt",
            "_one",
            "",
        ] {
            assert!(!is_of_library(name), "{name}");
        }
    }

    #[test]
    fn the_list_is_sorted() {
        assert!(super::LIBRARY.is_sorted());
    }
}
