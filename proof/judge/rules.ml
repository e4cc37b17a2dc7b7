(* Rules that certificates cite. The kernel has the rows, which are proved, and tests that a term is
   an instance of one (Matching.v). This part reads citations, and finds what the test asks for. *)
open Kernel

type text = { cited : string; swapped : int; named : int list; result : int option }

let rows = Array.of_list Kernel.rows
let by_name = Hashtbl.create 128
let () = Array.iteri (fun i (r : row) -> Hashtbl.replace by_name r.title i) rows
(* The test refuses it. *)
let none = { of_row = Array.length rows; swap = false; inner = []; made_by = 0; made_swap = false;
             facts = [] }

(* The operations of a pattern match the terms named, the outermost first, and then level by level.
   Operation [n] has its operands exchanged if bit [n] is set. *)
type node = { term : int; patterns : pat list; mutable exchanged : bool; mutable kids : node list }
exception Malformed
let nodes (row : row) t text =
  let root = { term = t; patterns = row.operands; exchanged = false; kids = [] } in
  let work = Queue.create () and left = ref text.named and at = ref 0 in
  Queue.add root work;
  while not (Queue.is_empty work) do
    let node = Queue.pop work in
    node.exchanged <- !at < 8 && (text.swapped lsr !at) land 1 = 1;
    incr at;
    node.kids <- List.filter_map (function
      | Op (_, patterns) ->
        (match !left with
         | [] -> raise Malformed
         | term :: rest ->
           left := rest;
           let kid = { term; patterns; exchanged = false; kids = [] } in
           Queue.add kid work;
           Some kid)
      | _ -> None) node.patterns
  done;
  if !left <> [] then raise Malformed;
  root
let rec inner_of node =
  let kids = ref node.kids in
  List.map (function
    | Op _ ->
      let kid = List.hd !kids in
      kids := List.tl !kids;
      Inner (kid.term, kid.exchanged, inner_of kid)
    | _ -> Here) node.patterns

(* The class that X stands for. *)
let rec find_x op_at node = match op_at node.term with
  | Some (_, args) when List.length args = List.length node.patterns ->
    let args = if node.exchanged then List.rev args else args in
    (match List.find_opt (fun (p, _) -> p = X) (List.combine node.patterns args) with
     | Some (_, x) -> Some x
     | None -> List.find_map (find_x op_at) node.kids)
  | _ -> None
(* The terms that show which bits of a class may be set, operands first. *)
let facts_of op_at x =
  let seen = Hashtbl.create 8 and facts = ref [] in
  let rec visit c =
    if not (Hashtbl.mem seen c) && Hashtbl.length seen < 1000 then begin
      Hashtbl.add seen c ();
      List.iter visit (match op_at c with
        | Some (Binary ((BAnd | BOr | BXor), _), [a; b]) | Some (Select _, [_; a; b]) -> [a; b]
        | Some ((Extend (false, _, _) | Wrap _), [a])
        | Some (Binary ((BShl | BUshr), _), [a; _]) -> [a]
        | _ -> []);
      facts := (c, c) :: !facts
    end in
  visit x;
  List.rev !facts

let cite op_at t text = match Hashtbl.find_opt by_name text.cited with
  | None -> none
  | Some i ->
    let row = rows.(i) in
    match nodes row t text with
    | exception Malformed -> none
    | root ->
      let x = find_x op_at root in
      let made_by = Option.value text.result ~default:0 in
      let made_swap = match row.result, op_at made_by with
        | (RBinary _ | RWith _), Some (_, [a; _]) -> x <> Some a
        | _ -> false in
      let facts = match row.condition, x with
        | (XIsBool | CCoversX | XMissesD | XBelowD | XWithin _), Some x -> facts_of op_at x
        | _ -> [] in
      { of_row = i; swap = root.exchanged; inner = inner_of root; made_by; made_swap; facts }

(* ** The rows as text, for comparison with those of Osier *)

let name_in l x = fst (List.find (fun (_, y) -> y = x) l)
let binary_name o = name_in Lang.binary o
let head_name = function
  | HUnary o -> name_in Lang.unary o | HBinary o -> binary_name o
  | HSelect -> "select" | HExtend true -> "sextend" | HExtend false -> "uextend" | HWrap -> "wrap"
let number z = Printf.sprintf "%Lu" (Lang.int64_of z)
let rec pattern = function
  | X -> "x" | Y -> "y" | C -> "c" | D -> "d" | Zero -> "zero" | One -> "one" | Ones -> "ones"
  | NonZero -> "nonzero" | Bits z -> number z
  | Op (h, l) -> Printf.sprintf "%s(%s)" (head_name h) (String.concat "," (List.map pattern l))
let made_name = function
  | Known z -> number z
  | TheC -> "c"
  | CthenD o -> Printf.sprintf "%s(c,d)" (binary_name o)
  | DthenC o -> Printf.sprintf "%s(d,c)" (binary_name o)
let right_name = function
  | RX -> "x" | RY -> "y" | ROperand n -> Printf.sprintf "operand%d" n
  | RZero -> "zero" | ROne -> "one" | ROnes -> "ones"
  | RUnary o -> Printf.sprintf "%s(x)" (name_in Lang.unary o)
  | RBinary o -> Printf.sprintf "%s(x,y)" (binary_name o)
  | RWith (o, m) -> Printf.sprintf "%s(x,%s)" (binary_name o) (made_name m)
  | RMade m -> made_name m
let guard_name = function
  | Always -> "always" | XIsBool -> "x-is-bool" | CCoversX -> "c-covers-x"
  | CAboveX -> "c-above-x" | XMissesD -> "x-misses-d" | XBelowD -> "x-below-d"
  | XWithin z -> "x-within-" ^ number z | CWithin z -> "c-within-" ^ number z
  | CCovers z -> "c-covers-" ^ number z
let print () =
  Array.iter (fun (r : row) ->
    Printf.printf "%s: %s %s -> %s, %s\n" r.title
      (match r.only with Some t -> name_in Lang.types t | None -> "any")
      (pattern (Op (r.opcode, r.operands))) (right_name r.result) (guard_name r.condition)) rows
