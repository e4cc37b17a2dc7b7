;; Kinds of calls. Every export takes the number of rounds of a loop, except `fib`, which takes the
;; argument of the recursion, and returns a checksum. Stores to `$pad` replace the lines `;; pad`;
;; they move the code behind them.
(module
  (memory (export "memory") 1)
  (global $count (mut i32) (i32.const 0))
  (global $pad (mut i32) (i32.const 0))
  (type $unary (func (param i32) (result i32)))
  (table 8 8 funcref)
  (elem (i32.const 0) $leaf $other $third $leaf $middle $other $leaf $third)

  (func $first
    ;; pad
  )
  (func $leaf (type $unary)
    (i32.add (i32.mul (local.get 0) (i32.const 1664525)) (i32.const 1013904223)))
  (func $other (type $unary)
    (i32.xor (i32.rotl (local.get 0) (i32.const 7)) (i32.const 99)))
  (func $third (type $unary)
    (i32.sub (i32.const 77) (i32.rotl (local.get 0) (i32.const 3))))
  (func $stores (type $unary)
    (i32.store (i32.and (local.get 0) (i32.const 0xfffc))
      (i32.add (local.get 0) (i32.load (i32.and (local.get 0) (i32.const 0xff0)))))
    (i32.add (local.get 0) (i32.const 41)))
  (func $counts (type $unary)
    (global.set $count (i32.add (global.get $count) (local.get 0)))
    (i32.add (local.get 0) (i32.const 41)))

  ;; A leaf whose values do not fit the registers.
  (func $wide (type $unary)
    (local i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32)
    (local.set 1 (i32.rotl (local.get 0) (i32.const 1)))
    (local.set 2 (i32.rotl (local.get 0) (i32.const 2)))
    (local.set 3 (i32.rotl (local.get 0) (i32.const 3)))
    (local.set 4 (i32.rotl (local.get 0) (i32.const 4)))
    (local.set 5 (i32.rotl (local.get 0) (i32.const 5)))
    (local.set 6 (i32.rotl (local.get 0) (i32.const 6)))
    (local.set 7 (i32.rotl (local.get 0) (i32.const 7)))
    (local.set 8 (i32.rotl (local.get 0) (i32.const 8)))
    (local.set 9 (i32.rotl (local.get 0) (i32.const 9)))
    (local.set 10 (i32.rotl (local.get 0) (i32.const 10)))
    (local.set 11 (i32.rotl (local.get 0) (i32.const 11)))
    (local.set 12 (i32.rotl (local.get 0) (i32.const 12)))
    (local.set 13 (i32.rotl (local.get 0) (i32.const 13)))
    (local.set 14 (i32.rotl (local.get 0) (i32.const 14)))
    (local.set 15 (i32.rotl (local.get 0) (i32.const 15)))
    (local.set 16 (i32.rotl (local.get 0) (i32.const 17)))
    (local.set 1 (i32.add (local.get 1) (i32.xor (local.get 2) (local.get 16))))
    (local.set 2 (i32.add (local.get 2) (i32.xor (local.get 3) (local.get 15))))
    (local.set 3 (i32.add (local.get 3) (i32.xor (local.get 4) (local.get 14))))
    (local.set 4 (i32.add (local.get 4) (i32.xor (local.get 5) (local.get 13))))
    (local.set 5 (i32.add (local.get 5) (i32.xor (local.get 6) (local.get 12))))
    (local.set 6 (i32.add (local.get 6) (i32.xor (local.get 7) (local.get 11))))
    (local.set 7 (i32.add (local.get 7) (i32.xor (local.get 8) (local.get 10))))
    (local.set 8 (i32.add (local.get 8) (i32.xor (local.get 9) (local.get 1))))
    (i32.add
      (i32.add (i32.mul (local.get 1) (local.get 2)) (i32.mul (local.get 3) (local.get 4)))
      (i32.add (i32.mul (local.get 5) (local.get 6)) (i32.mul (local.get 7) (local.get 8)))))

  (func $middle (type $unary)
    (i32.add (local.get 0) (call $leaf (local.get 0))))
  (func $chain3 (type $unary)
    (i32.xor (local.get 0) (call $middle (local.get 0))))
  (func $chain4 (type $unary)
    (i32.add (local.get 0) (call $chain3 (local.get 0))))
  (func $chain5 (type $unary)
    (i32.sub (local.get 0) (call $chain4 (local.get 0))))

  (func $eight (param i32 i32 i32 i32 i32 i32 i32 i32) (result i32 i32 i32)
    (i32.add (i32.add (local.get 0) (local.get 1)) (local.get 7))
    (i32.xor (i32.xor (local.get 2) (local.get 3)) (local.get 4))
    (i32.sub (i32.sub (local.get 5) (local.get 6)) (local.get 7)))
  (func $floats (param f64 f64 f64 f64) (result f64)
    (f64.add (f64.mul (local.get 0) (local.get 1)) (f64.mul (local.get 2) (local.get 3))))
  (func $six (param i32) (result i32 i32 i32 i32 i32 i32)
    (local.get 0)
    (i32.add (local.get 0) (i32.const 1))
    (i32.xor (local.get 0) (i32.const 2))
    (i32.rotl (local.get 0) (i32.const 3))
    (i32.sub (local.get 0) (i32.const 4))
    (i32.mul (local.get 0) (i32.const 5)))
  (func $fib (export "fib") (param i32) (result i32)
    (if (result i32) (i32.lt_u (local.get 0) (i32.const 2))
      (then (local.get 0))
      (else (i32.add
        (call $fib (i32.sub (local.get 0) (i32.const 1)))
        (call $fib (i32.sub (local.get 0) (i32.const 2)))))))

  (func (export "loop") (param $n i32) (result i32) (local $v i32)
    ;; pad
    (loop $again
      (local.set $v (i32.add (i32.mul (local.get $v) (i32.const 1664525))
        (i32.const 1013904223)))
      (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $v))
  (func (export "leaf") (param $n i32) (result i32) (local $v i32)
    ;; pad
    (loop $again
      (local.set $v (call $leaf (local.get $v)))
      (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $v))
  (func (export "stores") (param $n i32) (result i32) (local $v i32)
    ;; pad
    (loop $again
      (local.set $v (call $stores (local.get $v)))
      (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $v))
  (func (export "counts") (param $n i32) (result i32) (local $v i32)
    ;; pad
    (loop $again
      (local.set $v (call $counts (local.get $v)))
      (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $v))
  (func (export "wide") (param $n i32) (result i32) (local $v i32)
    ;; pad
    (loop $again
      (local.set $v (i32.xor (local.get $v) (call $wide (local.get $n))))
      (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $v))
  (func (export "middle") (param $n i32) (result i32) (local $v i32)
    ;; pad
    (loop $again
      (local.set $v (call $middle (local.get $v)))
      (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $v))
  (func (export "chain") (param $n i32) (result i32) (local $v i32)
    ;; pad
    (loop $again
      (local.set $v (call $chain5 (local.get $v)))
      (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $v))
  (func (export "eight") (param $n i32) (result i32) (local $v i32)
    ;; pad
    (loop $again
      (call $eight (local.get $v) (local.get $n) (i32.const 3) (local.get $v)
        (local.get $n) (i32.const 6) (local.get $v) (local.get $n))
      (local.set $v (i32.add (i32.add)))
      (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $v))
  (func (export "six") (param $n i32) (result i32) (local $v i32)
    ;; pad
    (loop $again
      (call $six (local.get $v))
      (local.set $v (i32.add (i32.add (i32.add (i32.add (i32.add))))))
      (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $v))
  (func (export "floats") (param $n i32) (result i32) (local $v i32)
    (local $x f64)
    ;; pad
    (loop $again
      (local.set $x (call $floats (local.get $x) (f64.const 0.5) (local.get $x)
        (f64.const 0.25)))
      (local.set $v (i32.wrap_i64 (i64.reinterpret_f64 (local.get $x))))
      (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $v))
  (func (export "indirect") (param $n i32) (result i32) (local $v i32)
    ;; pad
    (loop $again
      (local.set $v (call_indirect (type $unary) (local.get $v) (i32.const 3)))
      (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $v))
  (func (export "turns") (param $n i32) (result i32) (local $v i32)
    ;; pad
    (loop $again
      (local.set $v (call_indirect (type $unary) (local.get $v)
        (i32.and (local.get $n) (i32.const 3))))
      (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $v)))
