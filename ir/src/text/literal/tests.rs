//! Tests of `ir::text::literal`.

use super::*;

#[test]
fn printed_literals_read_back() {
    let bits = [
        0,
        1,
        0x7f,
        0x80,
        0xff,
        0x7fc0_0001,
        0xff80_0000,
        0x7f80_0000,
        0x8000_0000,
        0x7ff0_0000_0000_0000,
    ];
    for ty in Type::ALL {
        for bits in bits.into_iter().filter(|b| b & !ty.mask() == 0) {
            assert_eq!(parse_literal(&print_literal(ty, bits), ty), Some(bits), "{ty} {bits:#x}");
        }
    }
}

#[test]
fn literals_that_do_not_fit_their_type_are_rejected() {
    for (text, ty) in
        [("256", Type::I8), ("-129", Type::I8), ("1.5", Type::I32), ("nan:0x1", Type::F32)]
    {
        assert_eq!(parse_literal(text, ty), None, "{text} {ty}");
    }
    for text in ["", "-", "0x", "nan", "+1", "1e999", " 1"] {
        assert!(Type::ALL.iter().all(|ty| parse_literal(text, *ty).is_none()), "{text:?}");
    }
}
