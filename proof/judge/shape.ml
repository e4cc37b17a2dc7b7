(* What `osier check` asks of the lists of an entry, and no claim of the theorem needs: required
   and assigned values ascend and are available, and the kept values are the required ones that
   are not live. Engines go by the text of a version, so all edges count here, those that no run
   takes among them. Not part of the kernel. *)
open Kernel
open Claims

type text = {
  side : side;
  reached : bool array;                 (* by block, in the text *)
  first : int array; last : int array;  (* the range of each block in preorder of dominators *)
  constants : (int, z) Hashtbl.t;
  live : (int -> int -> set) Lazy.t }

let insts side b = List.init side.blks.(b).bn side.blks.(b).bi
let successors side b = List.map (fun e -> e.dst) side.blks.(b).lt.les

(* The operands that an instruction needs even if nothing needs its results. *)
let demanded constants o args =
  if Lang.is Lang.effects (Lang.op o).opcode then args
  else if not (may_trap o) then []
  else match args with
    | _ :: (divisor :: _ as rest) ->
      if cannot_trap o [None; Hashtbl.find_opt constants divisor] then rest else args
    | _ -> args

let insert_all l t = List.fold_left (fun t x -> Flow.insert x t) t l
let before constants i t = match i with
  | IPure (_, x, o, a) ->
    insert_all (if mem x t then a else demanded constants o a) (Flow.remove x t)
  | IEff (_, _, a, r) -> insert_all a (List.fold_left (fun t x -> Flow.remove x t) t r)

let live_values side order constants =
  let n = Array.length side.blks in
  let at_start = Array.make n Leaf and places = Array.make n [||] in
  let at_end b =
    let { la; les; _ } = side.blks.(b).lt in
    List.fold_left (fun t e ->
      let params = Hashtbl.create 8 in
      List.iter2 (fun p a -> Hashtbl.replace params p a) side.blks.(e.dst).ps e.ea;
      List.fold_left (fun t x -> match Hashtbl.find_opt params x with
        | Some a -> Flow.insert a t | None -> Flow.insert x t)
        t (Flow.elements at_start.(e.dst) [])) (insert_all la Leaf) les in
  let rec size = function Leaf -> 0 | Node (l, _, r) -> 1 + size l + size r in
  let changed = ref true in
  while !changed do
    changed := false;
    List.iter (fun b ->
      let t = ref (at_end b) in
      let here = Array.make (side.blks.(b).bn + 1) !t in
      for k = side.blks.(b).bn - 1 downto 0 do
        t := before constants (side.blks.(b).bi k) !t;
        here.(k) <- !t
      done;
      places.(b) <- here;
      if size !t > size at_start.(b) then begin at_start.(b) <- !t; changed := true end) order
  done;
  fun b k -> if b < n && k < Array.length places.(b) then places.(b).(k) else Leaf

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
  let constants = Hashtbl.create 64 in
  Array.iteri (fun b _ -> List.iter (function
    | IPure (_, x, Const (_, z), []) -> Hashtbl.replace constants x z
    | _ -> ()) (insts side b)) side.blks;
  { side; reached; first; last; constants;
    live = lazy (live_values side (List.rev order) constants) }

(* Whether the definition of a value dominates a place. *)
let available t (b, k) x =
  let (d, place) = t.side.v.dl x in
  let n = Array.length t.reached in
  d < n && b < n && t.reached.(b)
  && if d = b then place <= k
     else t.reached.(d) && t.first.(d) <= t.first.(b) && t.first.(b) <= t.last.(d)

let rec ascends = function x :: (y :: _ as r) -> x < y && ascends r | _ -> true

(* The first check that the lists of an entry fail. [required] are the values that the entry
   requires, ascending unless the file lists them otherwise, and [assigned] those that it assigns, sorted. *)
let flaw p q (src, tgt) ~required ~kept ~assigned =
  if not (ascends required && List.for_all (available p src) required) then Some "requires"
  else if not (ascends assigned && List.for_all (available q tgt) assigned)
  then Some "assign-shape"
  else
    let live = Lazy.force p.live (fst src) (snd src) in
    if List.filter (fun x -> not (mem x live)) required = kept then None else Some "kept"
