(* Claims about operations that trap in one version first: by anchor, which operations one version
   has executed and the other has not. Untrusted, as `claims.ml`. *)
open Kernel
open Claims

(* The operations of the other version that vouch for one of this version. *)
let known tbl own other x =
  match site_of own.v x with
  | Some (o, (z :: _)) ->
    List.filter_map (fun (y, o', _) -> if vouches_for o' o <> None then Some y else None)
      (other.sites [vcl tbl own.v z])
  | _ -> []

(* Whether a version executes an operation that may trap, that nothing excuses, and that is no
   anchor. *)
let has_open lang tbl anch side =
  List.exists (fun b ->
    let blk = side.blks.(b) in
    let rec look k = k < blk.bn && (match blk.bi k with
      | IPure (i, x, o, a) when may_trap o && not (anch i) ->
        not (excused lang tbl (Lang.traps ()) side.v side.vouchers b k x o a) || look (k + 1)
      | _ -> look (k + 1)) in
    look 0) side.post

let length side = Array.fold_left (fun n b -> n + b.bn + 1) 1 side.blks

(* The places behind an anchor. *)
let starts lang tbl p q k a =
  let ((b, i), (b', i')) = k.pos a in
  if b >= Array.length p.blks || b' >= Array.length q.blks then []
  else
    let blk = p.blks.(b) and blk' = q.blks.(b') in
    if i < blk.bn then [(b, i + 1), (b', i' + 1)]
    else match pairs lang tbl p.v q.v k a blk.lt blk'.lt with
      | Some ees -> List.map (fun (e, e') -> (e.dst, 0), (e'.dst, 0)) ees
      | None -> []

(* Whether an anchor ends a block. Nothing is owed behind another anchor. *)
let is_branch p k a =
  let (b, i) = fst (k.pos a) in
  b < Array.length p.blks && i >= p.blks.(b).bn

(* A number for each anchor with a queue, greater than those of the anchors with a queue that come
   next. A cycle gets any numbers, and the kernel refuses it. *)
let ranks n is_owed next =
  let rank = Array.make n 0 and seen = Array.make n false in
  let rec visit a = if not seen.(a) then begin
      seen.(a) <- true;
      List.iter (fun b -> if is_owed b then begin
        visit b; rank.(a) <- max rank.(a) (rank.(b) + 1) end) next.(a)
    end in
  for a = 0 to n - 1 do if is_owed a then visit a done;
  rank

let none = { steps_at_most = 0; by_p = Fun.id; by_q = Fun.id; only_p = (fun _ -> []);
  only_q = (fun _ -> []); rank = Fun.id; came = (fun _ -> []); meets = (fun _ -> []);
  known_p = (fun _ -> []); known_q = (fun _ -> []) }

(* Both queues at each anchor, from the start of the function on. *)
let claims lang tbl anch p q k =
  let n = k.nids in
  let queue = Array.make n None and came = Array.make n [] and meets = Array.make n [] in
  let next = Array.make n [] and work = Queue.create () in
  let get a x = if x < n then a.(x) else [] in
  let of_queue f a = match if a < n then queue.(a) else None with Some l -> f l | None -> [] in
  let x = { steps_at_most = length p + length q; by_p = p.vouchers; by_q = q.vouchers;
    only_p = of_queue fst; only_q = of_queue snd; rank = (fun _ -> 0); came = get came;
    meets = get meets; known_p = known tbl q p; known_q = known tbl p q } in
  let tl = (Lang.traps ()) in
  let join a l = List.fold_left (fun l y -> if List.mem y l then l else y :: l) a l in
  let way origin (xs, ys) ((b, i), (b', i')) =
    match walk lang tbl tl anch p.v p.vouchers x.steps_at_most b i,
          walk lang tbl tl anch q.v q.vouchers x.steps_at_most b' i' with
    | Some (lp, ap), Some (lq, aq) ->
      (match aid p.v (fst ap) (snd ap) with
       | Some a when a < n ->
         let np = List.filter (fun s -> not (ys = [] && q_passed tbl tl p.v q.v k x a aq lq s))
             (opens lp) in
         let nq = List.filter (fun s -> not (xs = [] && p_passed tbl tl p.v q.v k x a ap lp s))
             (opens lq) in
         came.(a) <- join came.(a) ys;
         meets.(a) <- join meets.(a) nq;
         (match origin with Some o -> next.(o) <- a :: next.(o) | None -> ());
         if queue.(a) = None then begin
           queue.(a) <- Some (cancel lang tbl tl p.v q.v k a (xs @ np) (ys @ nq));
           Queue.add a work
         end
       | _ -> ())
    | _ -> () in
  let is_owed a = a < n && match queue.(a) with Some ([], []) | None -> false | Some _ -> true in
  if has_open lang tbl anch p || has_open lang tbl anch q then begin
    way None ([], []) ((0, 0), (0, 0));
    while not (Queue.is_empty work) do
      let a = Queue.pop work in
      match queue.(a) with
      | Some l when not (k.stopped a) ->
        let (origin, l) = if is_branch p k a then (Some a, l) else (None, ([], [])) in
        List.iter (way origin l) (starts lang tbl p q k a)
      | _ -> ()
    done
  end;
  let rank = ranks n is_owed next in
  { x with rank = (fun a -> if a < n then rank.(a) else 0) }
