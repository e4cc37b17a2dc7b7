(* What `osier check` asks, and no claim of the theorem needs. Not part of the kernel. *)
open Kernel
open Claims

(* ** Anchors: each is the same instruction in both versions, also where no run comes *)

let branches = Lang.set ["jump"; "br_if"; "switch"]
let calls = Lang.set ["call"; "call_indirect"]
let insts_by_id (side : R.side) =
  let h = Hashtbl.create 64 in
  List.iter (fun (x : R.inst) -> Hashtbl.replace h x.id x) (all_insts side.blocks);
  h
(* A branch may be folded to a jump, and a call through a table may be resolved. *)
let same_anchor (x : R.inst) (y : R.inst) =
  let both set = Lang.is set x.opcode && Lang.is set y.opcode in
  let alike = x.opcode = y.opcode && List.length x.targets = List.length y.targets
    && List.length x.args = List.length y.args in
  let folded = x.opcode <> y.opcode && both branches && (x.opcode = "jump" || y.opcode = "jump") in
  x.ty = y.ty && List.length x.results = List.length y.results
  && (x.imm = y.imm && (alike || folded) || both calls)
let anchors_same (pair : R.pair) =
  let a = insts_by_id pair.versions.(0) and b = insts_by_id pair.versions.(1) in
  List.for_all (fun i -> match Hashtbl.find_opt a i, Hashtbl.find_opt b i with
    | Some x, Some y -> same_anchor x y
    | _ -> false) pair.anchors

(* ** Leaves: the memories among them have the type of a memory, and no others. To the kernel, a
   memory is a value like others. *)

let leaves_typed (pair : R.pair) =
  List.for_all (fun (t : R.term) -> match t.kind with
    | ("memory-at-entry" | "memory-param" | "memory-after") :: _ -> t.tty = "memory"
    | ("argument" | "param" | "result") :: _ -> t.tty <> "memory"
    | _ -> true) pair.terms

(* ** Claims about blocks and writes: the version has them *)

let memories_exist (pair : R.pair) =
  let terms = Array.of_list (List.rev pair.terms) in
  let is_memory t = t < Array.length terms && terms.(t).R.tty = "memory" in
  let set l = let h = Hashtbl.create 64 in List.iter (fun i -> Hashtbl.replace h i ()) l; h in
  let blocks_of (s : R.side) = set (List.map (fun (b : R.block) -> b.block) s.blocks) in
  let blocks = Array.map blocks_of pair.versions in
  let insts = Array.map insts_by_id pair.versions in
  List.for_all (fun (side, b, t) -> is_memory t && Hashtbl.mem blocks.(side) b) pair.memories
  && List.for_all (fun (side, i, _) -> Hashtbl.mem insts.(side) i) pair.writes

(* ** The lists of entries: required and assigned values ascend and are available, and the kept
   values are the required ones that are not live. Engines go by the text of a version, so all
   edges count here, those that no run takes among them. *)

type text = {
  side : side;
  reached : bool array;                 (* by block, in the text *)
  first : int array; last : int array;  (* the range of each block in preorder of dominators *)
  live : (int -> int -> set) Lazy.t }

let insts side b = List.init side.blks.(b).bn side.blks.(b).bi
let successors side b = List.map (fun e -> e.dst) side.blks.(b).lt.les

(* The operands that an instruction needs even if nothing needs its results. *)
let demanded constants o args =
  if Lang.is Lang.effects (Lang.op o).opcode then args
  else if not (may_trap o) then []
  else match args with
    | _ :: (divisor :: _ as rest) ->
      if cannot_trap (fun _ -> Z0) o [None; Hashtbl.find_opt constants divisor] then rest else args
    | _ -> args

(* The values of the text that hold constants. *)
let constants side =
  let h = Hashtbl.create 64 in
  Array.iteri (fun b _ -> List.iter (function
    | IPure (_, x, Const (_, z), []) -> Hashtbl.replace h x z
    | _ -> ()) (insts side b)) side.blks;
  h

(* The values needed in the runs of a version, as `osier check` has it: a division that nothing
   needs, by a constant that excludes a trap, needs the constant alone. The theorem has no such
   rule, and the kernel asks for both operands. *)
let lax_need lang tbl side armed =
  let edges = Flow.live lang tbl side in
  Flow.needed_by ~demanded:(demanded (constants side)) ~order:side.post ~edges side armed

let text side =
  let n = Array.length side.blks in
  let (reached, idom, _, order) = dominators n (successors side) in
  let children = Array.make n [] in
  List.iter (fun b -> if b <> 0 then children.(idom.(b)) <- b :: children.(idom.(b))) order;
  let first = Array.make n 0 and last = Array.make n 0 and next = ref 0 in
  let rec number b =
    first.(b) <- !next; incr next;
    List.iter number children.(b);
    last.(b) <- !next - 1 in
  number 0;
  let edges = Array.map (fun b -> b.lt.les) side.blks in
  let none _ _ = Leaf in
  { side; reached; first; last;
    live = lazy (Flow.needed_by ~demanded:(demanded (constants side)) ~order:(List.rev order) ~edges
                   side none) }

(* Whether the definition of a value dominates a place. Numbers behind those of the file are those
   of memories, which entries do not name. *)
let available t (b, k) x =
  let (d, place) = t.side.v.dl x in
  let n = Array.length t.reached in
  x < t.side.named && d < n && b < n && t.reached.(b)
  && if d = b then place <= k
     else t.reached.(d) && t.first.(d) <= t.first.(b) && t.first.(b) <= t.last.(d)

(* The operands of steps, replays and assignments, frames among them. *)
let operands (e : R.entry) =
  List.concat_map (fun (s : R.step) -> s.operands) e.steps
  @ List.concat_map (fun (r : R.replay) -> r.roperands) e.replays
  @ List.map snd e.assigns
  @ List.concat_map (fun (f : R.frame) -> List.map snd f.fassigns) e.frames
(* The first check that operands fail: values are those of the text, and the first operand of a step
   has the type that the step names. *)
let odd_operands (p : side) (e : R.entry) =
  let steps = Array.of_list (List.rev e.steps) in
  let type_of = function
    | R.V v -> p.type_of v
    | R.S n when n < Array.length steps ->
      let s = steps.(n) in
      let imm = if s.R.op = "const" then "bits:" ^ s.bits else "-" in
      let source = if s.operands = [] then "" else s.operand_ty in
      Some (Lang.type_name (Lang.lang.rty (Lang.key s.op s.sty source imm)))
    | R.S _ -> None in
  let is_named = function R.V v -> p.type_of v <> None | R.S _ -> true in
  let fits (s : R.step) = match s.operands with
    | first :: _ -> type_of first = Some s.operand_ty
    | [] -> true in
  if not (List.for_all is_named (operands e)) then Some "requires"
  else if not (List.for_all fits e.steps) then Some "step-shape"
  else None

let rec ascends = function x :: (y :: _ as r) -> x < y && ascends r | _ -> true

(* The first check that the lists of an entry fail. [required] are the values that the entry
   requires, ascending unless the file lists them otherwise, and [assigned] those that it assigns,
   sorted. *)
let flaw p q (src, tgt) ~required ~kept ~assigned =
  if not (ascends required && List.for_all (available p src) required) then Some "requires"
  else if not (ascends assigned && List.for_all (available q tgt) assigned)
  then Some "assign-shape"
  else
    let live = Lazy.force p.live (fst src) (snd src) in
    if List.filter (fun x -> not (mem x live)) required = kept then None else Some "kept"
