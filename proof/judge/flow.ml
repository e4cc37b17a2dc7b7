(* Claims about flow: the values needed at each place, and the blocks that stopped anchors leave
   alone. Untrusted, as `claims.ml`. *)
open Kernel
open Claims

(* ** Sets and maps as treaps: neighbors share most of their nodes. *)
let prio x = (x * 0x2545F4914F6CDD1D) land max_int

let rec insert x t = match t with
  | Leaf -> Node (Leaf, x, Leaf)
  | Node (l, y, r) ->
    if x = y then t
    else if x < y then
      (match insert x l with
       | Node (ll, z, lr) when prio z > prio y -> Node (ll, z, Node (lr, y, r))
       | l' -> if l' == l then t else Node (l', y, r))
    else
      (match insert x r with
       | Node (rl, z, rr) when prio z > prio y -> Node (Node (l, y, rl), z, rr)
       | r' -> if r' == r then t else Node (l, y, r'))
let rec join l r = match l, r with
  | Leaf, t | t, Leaf -> t
  | Node (ll, x, lr), Node (rl, y, rr) ->
    if prio x > prio y then Node (ll, x, join lr r) else Node (join l rl, y, rr)
let rec remove x t = match t with
  | Leaf -> Leaf
  | Node (l, y, r) ->
    if x = y then join l r
    else if x < y then (let l' = remove x l in if l' == l then t else Node (l', y, r))
    else (let r' = remove x r in if r' == r then t else Node (l, y, r'))
let rec elements t acc = match t with Leaf -> acc | Node (l, x, r) ->
  elements l (x :: elements r acc)

let rec put x a t = match t with
  | MLeaf -> MNode (MLeaf, x, a, MLeaf)
  | MNode (l, y, b, r) ->
    if x = y then MNode (l, y, a, r)
    else if x < y then
      (match put x a l with
       | MNode (ll, z, c, lr) when prio z > prio y -> MNode (ll, z, c, MNode (lr, y, b, r))
       | l' -> MNode (l', y, b, r))
    else
      (match put x a r with
       | MNode (rl, z, c, rr) when prio z > prio y -> MNode (MNode (l, y, b, rl), z, c, rr)
       | r' -> MNode (l, y, b, r'))
let rec mjoin l r = match l, r with
  | MLeaf, t | t, MLeaf -> t
  | MNode (ll, x, a, lr), MNode (rl, y, b, rr) ->
    if prio x > prio y then MNode (ll, x, a, mjoin lr r) else MNode (mjoin l rl, y, b, rr)
let rec drop x t = match t with
  | MLeaf -> MLeaf
  | MNode (l, y, a, r) ->
    if x = y then mjoin l r
    else if x < y then MNode (drop x l, y, a, r) else MNode (l, y, a, drop x r)

(* ** Needed values *)

let insert_all l t = List.fold_left (fun t x -> insert x t) t l
(* [demanded] are the operands that an instruction needs even if nothing needs its result. *)
let before_inst demanded i t = match i with
  | IPure (_, x, o, a) -> insert_all (if mem x t then a else demanded o a) (remove x t)
  | IEff (_, _, a, r) -> insert_all a (List.fold_left (fun t x -> remove x t) t r)

let add_armed armed t = match armed with Leaf -> t | _ -> elements armed [] |> List.fold_left (fun t
  x -> insert x t) t

(* By block, the values needed before each place of it, as a least fixpoint. [order] are the blocks
   that count, exits first, and [edges] the edges that count. *)
let needed_by ~demanded ~order ~edges side armed =
  let n = Array.length side.blks in
  let at_start = Array.make n Leaf in
  let at_end b =
    let t = List.fold_left (fun t x -> insert x t) Leaf side.blks.(b).lt.la in
    List.fold_left (fun t e ->
      let params = side.blks.(e.dst).ps and needed = at_start.(e.dst) in
      let h = Hashtbl.create 8 in
      List.iter2 (fun p a -> Hashtbl.replace h p a) params e.ea;
      List.fold_left (fun t x -> match Hashtbl.find_opt h x with
        | Some a -> insert a t | None -> insert x t) t (elements needed [])) t edges.(b) in
  let walk b visit =
    let blk = side.blks.(b) in
    let t = ref (add_armed (armed b blk.bn) (at_end b)) in
    visit blk.bn !t;
    for k = blk.bn - 1 downto 0 do
      t := add_armed (armed b k) (before_inst demanded (blk.bi k) !t);
      visit k !t
    done;
    !t in
  let rec size t = match t with Leaf -> 0 | Node (l, _, r) -> 1 + size l + size r in
  let changed = ref true in
  while !changed do
    changed := false;
    List.iter (fun b ->
      let t = walk b (fun _ _ -> ()) in
      if size t > size at_start.(b) then begin at_start.(b) <- t; changed := true end) order
  done;
  let places = Array.map (fun b -> Array.make (b.bn + 1) Leaf) side.blks in
  List.iter (fun b -> ignore (walk b (fun k t -> places.(b).(k) <- t))) order;
  fun b k -> if b < n && k < Array.length places.(b) then places.(b).(k) else Leaf

let live lang tbl side = Array.map (fun b -> live_edges lang tbl side.v b.lt) side.blks
let needed lang tbl side armed =
  let demanded o a = if may_trap o then a else [] in
  needed_by ~demanded ~order:side.post ~edges:(live lang tbl side) side armed

(* ** Traps *)

(* For each operation that may trap, a value whose operation vouches for it, if there is one; and
   the operations without such a value, by the class of their first operand. *)
let vouchers lang tbl side =
  let found = Hashtbl.create 64 and by_operand = Hashtbl.create 64 and at_constants = ref [] in
  let tl = Lang.traps () in
  let rec classes n l = match l with
    | z :: r when n > 0 -> vcl tbl side.v z :: classes (n - 1) r
    | _ -> [] in
  let look b k x o a =
    let fits (y, o', a') =
      availb side.v y b k
      && match vouches_for o' o with Some n -> classes n a' = classes n a | None -> false in
    let ks = operands_known lang tbl side.v a in
    (* Few accesses at constants are not below the least size of their memory. *)
    let is_open = match ks with Some _ :: _ -> not (tl.safe o ks) | _ -> false in
    let reaches (y, o', ks') = availb side.v y b k && vouches_at o' o ks' ks in
    match List.find_opt fits (Hashtbl.find_all by_operand (classes 1 a)) with
    | Some (y, _, _) -> Hashtbl.replace found x y; true
    | None when is_open ->
      (match List.find_opt reaches !at_constants with
       | Some (y, _, _) -> Hashtbl.replace found x y; true
       | None -> at_constants := (x, o, ks) :: !at_constants; false)
    | None -> false in
  (* From dominators down. An operation that is vouched for vouches for none: its own does. *)
  List.iter (fun b ->
    let blk = side.blks.(b) in
    for k = 0 to blk.bn - 1 do
      match blk.bi k with
      | IPure (_, x, o, a) when may_trap o ->
        if not (look b k x o a) then Hashtbl.add by_operand (classes 1 a) (x, o, a)
      | _ -> ()
    done) (List.rev side.post);
  { side with vouchers = (fun x -> try Hashtbl.find found x with Not_found -> nowhere);
              sites = Hashtbl.find_all by_operand }

let rec first n l = match l with x :: r when n > 0 -> x :: first (n - 1) r | _ -> []
(* For each step of an entry that may trap, values of the source version and of the target version
   whose operations vouch for it. *)
let step_vouchers lang tbl anch p q e =
  let here = Hashtbl.create 4 and far = Hashtbl.create 4 in
  let claim h x = try Hashtbl.find h x with Not_found -> nowhere in
  let is_risky s = may_trap s.so in
  let find side (b, k) fit firsts o ks =
    let fits (y, o', a') =
      availb side.v y b k
      && match vouches_for o' o with
         | Some n ->
           let wanted = first n ks and given = first n a' in
           List.length wanted = List.length given
           && List.for_all2 (fun k z -> fit k (vcl tbl side.v z)) wanted given
         | None -> false in
    List.concat_map (fun c -> side.sites [c]) firsts |> List.find_opt fits in
  let note h n = function Some (y, _, _) -> Hashtbl.replace h n y | None -> () in
  let of_step b known n s =
    let ks = List.map (opcls tbl p.v e b known) s.sa in
    match ks with
    | (h, f) :: _ ->
      let becomes (l, r) = if r <> None && r = h then Some l else None in
      let far_classes = Option.to_list f @ List.filter_map becomes b in
      note here n (find p e.src fits_here (Option.to_list h) s.so ks);
      note far n (find q e.tgt (fits_far b) far_classes s.so ks)
    | [] -> () in
  (if List.exists is_risky e.steps then
     match from lang tbl anch p.v (fst e.src) (snd e.src) with
     | Some (csp, _) ->
       let b = crosses_all tbl p.v [] csp in
       (match steps_class lang tbl p.v e b e.steps [] with
        | Some known -> List.iteri (fun n s -> if is_risky s then of_step b known n s) e.steps
        | None -> ())
     | None -> ());
  (claim here, claim far)

(* ** Stopped anchors *)

(* The blocks that no stopped anchor leads to, and those that lead to none. *)
let clean lang tbl side stopped_blocks =
  let n = Array.length side.blks in
  let next = Array.map (fun b -> List.map (fun e -> e.dst) (live_edges lang tbl side.v b.lt))
    side.blks in
  let back = Array.make n [] in
  List.iter (fun b -> List.iter (fun s -> back.(s) <- b :: back.(s)) next.(b)) side.post;
  let spread succ =
    let met = Array.make n false in
    let rec visit b = if not met.(b) then begin met.(b) <- true; List.iter visit succ.(b) end in
    List.iter visit stopped_blocks;
    fun b -> b < n && not met.(b) in
  (spread next, spread back)
