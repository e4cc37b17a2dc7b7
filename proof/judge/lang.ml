(* The language as the kernel sees it: operations are numbers, constants are bits. *)
open Kernel

type op = { opcode : string; ty : string; source : string; imm : string }
let known : (op, int) Hashtbl.t = Hashtbl.create 256
let by_number : op array ref = ref [||]
let count = ref 0
(* The number of an operation. Operations are equal if their numbers are. *)
let number op =
  match Hashtbl.find_opt known op with
  | Some n -> n
  | None ->
    let n = !count in
    if n >= Array.length !by_number then
      by_number := Array.append !by_number (Array.make (n + 64) op);
    !by_number.(n) <- op;
    incr count;
    Hashtbl.add known op n;
    n
let op n = !by_number.(n)

let set l = let h = Hashtbl.create 64 in List.iter (fun o -> Hashtbl.replace h o ()) l; h
let terminators = set ["jump"; "br_if"; "switch"; "return"; "trap"; "osr_exit"]
(* Instructions with an effect. Stores and writes of globals are writes of one place, unless the
   certificate gives the memory after them no term. *)
let effects = set [
  "call"; "call_indirect"; "call_outside"; "memory_grow"; "memory_copy"; "memory_fill";
  "memory_init"; "data_drop"; "table_set"; "table_grow"; "table_fill"; "table_copy"; "table_init";
  "elem_drop"; "osr_test"; "store"; "store8"; "store16"; "store32"; "global_set"]
(* Effects that leave the state as it is. *)
let keeps_memory o = o = "call_outside"
let readers = set [
  "load"; "uload8"; "sload8"; "uload16"; "sload16"; "uload32"; "sload32"; "memory_size";
  "ref_bits"; "ref_of"; "table_get"; "table_size"; "global_get"; "call_reads"]
let commuting = set [
  "add"; "mul"; "and"; "or"; "xor"; "eq"; "ne"; "sadd_overflows"; "smul_overflows"; "feq"; "fne";
  "ref_eq"]
(* Operations whose meaning depends on the type of the first operand, too. *)
let converting = set [
  "sextend"; "uextend"; "wrap"; "float_from_sint"; "float_from_uint"; "sint_from_float";
  "uint_from_float"; "sint_from_float_sat"; "uint_from_float_sat"; "fpromote"; "fdemote";
  "bitcast"; "select"]
let is t o = Hashtbl.mem t o
let key opcode ty source imm =
  number { opcode; ty; source = (if is converting opcode then source else ""); imm }

(* Numbers are read as unsigned. *)
let bits_of w = Int64.of_string ("0u" ^ w)

let width = function
  | "i1" -> 1 | "i8" -> 8 | "i16" -> 16 | "i32" | "f32" -> 32 | _ -> 64
let mask ty = let w = width ty in
  if w = 64 then -1L else Int64.sub (Int64.shift_left 1L w) 1L
let signed ty x = let u = 64 - width ty in Int64.shift_right (Int64.shift_left x u) u
let ucmp = Int64.unsigned_compare
let bit b = Some (if b then 1L else 0L)

let int_binary o ty x y =
  let open Int64 in
  let m = mask ty and w = width ty in
  let x = logand x m and y = logand y m in
  let n = to_int (unsigned_rem y (of_int w)) in
  let some r = Some (logand r m) in
  let sx = signed ty x and sy = signed ty y in
  match o with
  | "add" -> some (add x y) | "sub" -> some (sub x y) | "mul" -> some (mul x y)
  | "and" -> some (logand x y) | "or" -> some (logor x y) | "xor" -> some (logxor x y)
  | "shl" -> some (shift_left x n) | "ushr" -> some (shift_right_logical x n)
  | "sshr" -> some (shift_right sx n)
  | "rotl" -> some (if n = 0 then x else logor (shift_left x n) (shift_right_logical x (w - n)))
  | "rotr" -> some (if n = 0 then x else logor (shift_right_logical x n) (shift_left x (w - n)))
  | "udiv" -> if y = 0L then None else some (unsigned_div x y)
  | "urem" -> if y = 0L then None else some (unsigned_rem x y)
  | "sdiv" ->
    let least = signed ty (shift_left 1L (w - 1)) in
    if y = 0L || (sy = -1L && sx = least) then None else some (div sx sy)
  | "srem" -> if y = 0L then None else if sy = -1L then Some 0L else some (rem sx sy)
  | "eq" -> bit (x = y) | "ne" -> bit (x <> y)
  | "ult" -> bit (ucmp x y < 0) | "ule" -> bit (ucmp x y <= 0)
  | "ugt" -> bit (ucmp x y > 0) | "uge" -> bit (ucmp x y >= 0)
  | "slt" -> bit (compare sx sy < 0) | "sle" -> bit (compare sx sy <= 0)
  | "sgt" -> bit (compare sx sy > 0) | "sge" -> bit (compare sx sy >= 0)
  | _ -> None

let int_unary o ty x =
  let open Int64 in
  let m = mask ty and w = width ty in
  let x = logand x m in
  let rec ones n y = if y = 0L then n else ones (n + 1) (logand y (sub y 1L)) in
  let rec leading n = if n = w then n
    else if logand (shift_right_logical x (w - 1 - n)) 1L = 1L then n else leading (n + 1) in
  let rec trailing n = if n = w then n
    else if logand (shift_right_logical x n) 1L = 1L then n else trailing (n + 1) in
  match o with
  | "eqz" -> bit (x = 0L)
  | "popcnt" -> Some (of_int (ones 0 x))
  | "clz" -> Some (of_int (leading 0)) | "ctz" -> Some (of_int (trailing 0))
  | "sext8" -> Some (logand (signed "i8" x) m) | "sext16" -> Some (logand (signed "i16" x) m)
  | "sext32" -> Some (logand (signed "i32" x) m)
  | _ -> None

(* Floats fold in double precision. A sum, difference, product, quotient or root of two floats of
   single precision is rounded twice without harm, since a double has more than twice the digits. *)
let float_of ty x = if ty = "f32" then Int32.float_of_bits (Int64.to_int32 x) else Int64.float_of_bits x
let of_float ty r =
  if r <> r then None
  else if ty = "f32" then Some (Int64.logand (Int64.of_int32 (Int32.bits_of_float r)) 0xffffffffL)
  else Some (Int64.bits_of_float r)
let float_binary o ty x y =
  let a = float_of ty x and b = float_of ty y in
  match o with
  | "fadd" -> of_float ty (a +. b) | "fsub" -> of_float ty (a -. b)
  | "fmul" -> of_float ty (a *. b) | "fdiv" -> of_float ty (a /. b)
  | "feq" -> bit (a = b) | "fne" -> bit (a <> b) | "flt" -> bit (a < b) | "fle" -> bit (a <= b)
  | "fgt" -> bit (a > b) | "fge" -> bit (a >= b)
  | _ -> None
let float_unary o ty x =
  let sign = Int64.shift_left 1L (width ty - 1) in
  match o with
  | "fneg" -> Some (Int64.logxor x sign)
  | "fabs" -> Some (Int64.logand x (Int64.lognot sign))
  | "fsqrt" -> of_float ty (sqrt (float_of ty x))
  | _ -> None
(* A number of 64 bits is not rounded to single precision here: it would be rounded twice. *)
let from_int ty source signed_ x =
  if ty = "f32" && source = "i64" then None
  else if signed_ then of_float ty (Int64.to_float (signed source x))
  else if source = "i32" then of_float ty (Int64.to_float (Int64.logand x 0xffffffffL))
  else None

let fold_op { opcode = o; ty; source; imm } args =
  match o, args with
  | "const", [] when String.length imm > 5 -> Some (bits_of (String.sub imm 5 (String.length imm - 5)))
  | "uextend", [x] -> Some (Int64.logand x (mask source))
  | "sextend", [x] -> Some (Int64.logand (signed source x) (mask ty))
  | ("wrap" | "bitcast"), [x] -> Some (Int64.logand x (mask ty))
  | "float_from_sint", [x] -> from_int ty source true x
  | "float_from_uint", [x] -> from_int ty source false x
  | "fpromote", [x] -> of_float "f64" (float_of "f32" x)
  | "fdemote", [x] -> of_float "f32" (float_of "f64" x)
  | "select", [c; a; b] ->
    Some (Int64.logand (if Int64.logand c (mask source) <> 0L then a else b) (mask ty))
  | _, [x] -> if ty.[0] = 'f' then float_unary o ty x else int_unary o ty x
  | _, [x; y] -> if ty.[0] = 'f' then float_binary o ty x y else int_binary o ty x y
  | _ -> None

let pick n args = match (op n).opcode, args with
  | "br_if", [c] -> if c <> 0L then 0 else 1
  | "switch", [c] -> if ucmp c 0x3fffffffL > 0 then 0x3fffffff else Int64.to_int c
  | _ -> 0
let asks b o z = (op b).opcode = "br_if" && (op o).opcode = "ne" && z = 0L

let lang rule_ok = {
  op_eqb = (fun (a : int) b -> a = b); ceqb = Int64.equal;
  comm = (fun n -> is commuting (op n).opcode);
  fold = (fun n args -> fold_op (op n) args); pick; asks; rule_ok }
