//! Programs of the fuzzer that tests judge again.

/// A loop that assumptions cut at one branch in the first version, and at another in the second.
pub(super) const LOOP_WITHOUT_A_SHARED_ANCHOR: &str = "\
memory @memory 1 3
func @helper0() -> (i32, i32) {
block0:
  %v0 = const.i32 65535
  %v1 = mul.i32 %v0, %v0
  %v2 = const.i64 4
  %v3 = const.i64 0
  %v7 = const.i16 -1
  %v8 = slt.i16 %v7, %v7
  br_if %v8, block1(%v3, %v0, %v0), block1(%v3, %v0, %v0)
block1(%v4: i64, %v5: i32, %v6: i32):
  %v9 = ne.i64 %v4, %v2
  %v10 = eqz.i32 %v9
  br_if %v10, block2, block3
block2:
  %v35 = xor.i32 %v8, %v5
  %v36 = add.i32 %v35, %v0
  %v37 = const.i32 5
  %v38 = add.i32 %v37, %v37
  return %v36, %v38
block3:
  %v11 = const.i64 2
  %v12 = ult.i64 %v4, %v11
  br_if %v12, block5(%v11), block4
block4:
  %v14 = const.i32 60
  %v15 = and.i32 %v0, %v14
  store.i32 @memory[%v15 + 8], %v14
  %v16 = const.i32 12
  %v17 = load.i64 @memory[%v16 + 8]
  jump block5(%v11)
block5(%v13: i64):
  %v18 = const.i32 4
  %v19 = rotl.i32 %v10, %v18
  %v20 = const.i64 65
  %v21 = eq.i64 %v2, %v20
  br_if %v21, block6, block7
block6:
  %v22 = mul.i32 %v21, %v21
  %v23 = const.i64 1
  %v24 = add.i64 %v4, %v23
  jump block1(%v24, %v5, %v6)
block7:
  %v25 = mul.i32 %v21, %v21
  %v26 = const.f64 5.0
  %v27 = fle.f64 %v26, %v26
  br_if %v27, block8, block9
block8:
  %v28 = const.i32 32
  %v29 = eq.i32 %v28, %v18
  %v30 = add.i16 %v7, %v7
  %v31 = const.i64 1
  %v32 = add.i64 %v4, %v31
  jump block1(%v32, %v5, %v6)
block9:
  %v33 = const.i64 1
  %v34 = add.i64 %v4, %v33
  jump block1(%v34, %v5, %v6)
}
func @main(%x: i64, %y: i32, %z: i32) -> i32 {
entry:
  %a, %b = call @helper0()
  return %a
}
";
