(** One version: its runs, and the check of the claims about it.

    A run carries the contents that each leaf was last bound to, besides its state. The invariant
    needs no theory of dominators: availability is read from claimed sets of blocks. The check asks
    that these sets shrink along live edges, and the proof uses nothing else of them. *)
From Coq Require Import List Arith Lia Bool.
Import ListNotations.
From Osier Require Import Util Terms Memory Classes.

Record edge := Edge { dst : nat; ea : list nat }.
Inductive inst (op : Type) :=
| IPure (i v : nat) (o : op) (a : list nat)     (* v = o a *)
| IEff (i : nat) (o : op) (a r : list nat).     (* an effect with the results r *)
Arguments IPure {op}. Arguments IEff {op}.
(** A terminator: its id, its operation, the operands that the operation shows or decides by, and
    the edges. A return and a trap have no edges. *)
Record last (op : Type) := Last { li : nat; lo : op; la : list nat; les : list edge }.
Arguments Last {op}. Arguments li {op}. Arguments lo {op}. Arguments la {op}. Arguments les {op}.
Record blk (op : Type) := Blk { ps : list nat; bn : nat; bi : nat -> inst op; lt : last op }.
Arguments Blk {op}. Arguments ps {op}. Arguments bn {op}. Arguments bi {op}. Arguments lt {op}.

Definition inst_at {op} (B : blk op) (k : nat) : option (inst op) :=
  if k <? bn B then Some (bi B k) else None.
Lemma inst_some {op} (B : blk op) k i : inst_at B k = Some i -> k < bn B.
Proof.
  unfold inst_at. destruct (k <? bn B) eqn:E; [|discriminate]. intros _. now apply Nat.ltb_lt.
Qed.
Lemma inst_none {op} (B : blk op) k : inst_at B k = None <-> bn B <= k.
Proof.
  unfold inst_at. destruct (k <? bn B) eqn:E.
  - apply Nat.ltb_lt in E. split; [discriminate|lia].
  - apply Nat.ltb_ge in E. split; auto.
Qed.

(** The edge of this number, or the last one: a switch takes the last edge for all greater
    indices. *)
Definition edge_no {A} (es : list A) (n : nat) : option A :=
  match nth_error es n with Some e => Some e | None => nth_error es (pred (length es)) end.
Lemma edge_no_in {A} (es : list A) n e : edge_no es n = Some e -> In e es.
Proof.
  unfold edge_no. destruct (nth_error es n) eqn:N; intro H.
  - inversion H; subst. eapply nth_error_In; eauto.
  - eapply nth_error_In; eauto.
Qed.
Lemma edge_no_some {A} (es : list A) n : es <> [] -> exists e, edge_no es n = Some e.
Proof.
  intro N. unfold edge_no. destruct (nth_error es n); eauto.
  destruct (nth_error es (pred (length es))) eqn:Q; eauto.
  apply nth_error_None in Q. destruct es; [contradiction|]. simpl in Q. lia.
Qed.
Lemma nth_error_combine {A B} (es : list A) : forall (es' : list B) n e e',
  nth_error es n = Some e -> nth_error es' n = Some e' -> nth_error (combine es es') n = Some (e,
    e').
Proof.
  induction es as [|x es IH]; intros [|y es'] [|n] e e' H H'; simpl in *; try discriminate; auto.
  inversion H; inversion H'; auto.
Qed.
Lemma edge_no_pair {A} (es es' : list A) n e e' : length es = length es' ->
  edge_no es n = Some e -> edge_no es' n = Some e' -> edge_no (combine es es') n = Some (e, e').
Proof.
  intros Ln. unfold edge_no. rewrite combine_length, <- Ln, Nat.min_id.
  destruct (nth_error es n) eqn:N; intros H H'.
  - destruct (nth_error es' n) eqn:N'.
    + inversion H; inversion H'; subst. now rewrite (nth_error_combine _ _ _ _ _ N N').
    + apply nth_error_None in N'. assert (n < length es) by (apply nth_error_Some; congruence). lia.
  - apply nth_error_None in N. rewrite (proj2 (nth_error_None es' n)) in H' by lia.
    rewrite (proj2 (nth_error_None (combine es es') n)) by (rewrite combine_length; lia).
    now apply nth_error_combine.
Qed.

(** A version with the claims about it. All claims are untrusted. *)
Record version (op : Type) := Version {
  fn : nat;                    (* the number of blocks; block 0 is the entry *)
  fb : nat -> blk op;
  tm : nat -> nat;             (* the term of a value *)
  lv : nat -> bool;            (* blocks that may be reached *)
  doms : nat -> list nat;      (* blocks that dominate a block, itself first *)
  dl : nat -> nat * nat;       (* the definition of a value: block, and instructions passed *)
  sole : nat -> option nat;    (* the only block that leads to a block, if there is one *)
  home : nat -> nat;           (* the block that binds a leaf *)
  eloc : nat -> nat * nat;     (* the place of an effect *)
  mreads : nat -> list nat;    (* the merged reads of the memory that a block binds *)
  holder : nat -> nat          (* the value that has a leaf *)
}.
Arguments Version {op}. Arguments fn {op}. Arguments fb {op}. Arguments tm {op}.
Arguments lv {op}. Arguments sole {op}. Arguments doms {op}. Arguments dl {op}.
  Arguments home {op}. Arguments eloc {op}.
Arguments mreads {op}. Arguments holder {op}.

Record st (V W : Type) := St {
  sb : nat; sk : nat;          (* block, and instructions passed in it *)
  se : nat -> V;               (* contents of values *)
  sw : W;
  str : list nat;              (* the effects executed *)
  ss : nat -> V                (* contents of leaves *)
}.
Arguments St {V W}. Arguments sb {V W}. Arguments sk {V W}. Arguments se {V W}.
Arguments sw {V W}. Arguments str {V W}. Arguments ss {V W}.

Section Version.
Context {C op R V W : Type} (L : Lang C op R) (M : Sem C op V W) (T : table op R).
Variable anch : nat -> bool.   (* the anchors, by id *)
Variable stop : nat -> bool.   (* anchors at which the runs that are considered end *)
Variable v : version op.

Notation D := (D M T).
Notation cls := (cls T).
Notation knd := (knd T).
Notation leaf := (leaf T).
Notation indep := (indep M T).
Notation TL := (TL M T).
Notation tty := (tty T).
Notation AL := (AL T).
Definition vcl (x : nat) : nat := cls (tm v x).
Definition blk_at (b : nat) : option (blk op) := if b <? fn v then Some (fb v b) else None.
Lemma blk_lt b B : blk_at b = Some B -> b < fn v.
Proof. unfold blk_at. destruct (b <? fn v) eqn:E; [|discriminate]. intros _. now apply Nat.ltb_lt.
  Qed.

(** ** Runs *)
Definition assign (l : list (nat * V)) (env : nat -> V) : nat -> V :=
  fun x => match find (fun y => fst y =? x) l with Some (_, a) => a | None => env x end.
Definition isparam (t : nat) : bool := match knd t with Some KParam => true | _ => false end.
Definition isres (i t : nat) : bool := match knd t with Some (KRes j _) => j =? i | _ => false end.
Definition leafb (B x : nat) : bool := isparam (tm v x) && (home v (tm v x) =? B).
Fixpoint bindl (B : nat) (l : list (nat * V)) (s : nat -> V) : nat -> V :=
  match l with
  | [] => s
  | (x, a) :: r => if leafb B x then upd (bindl B r s) (tm v x) a else bindl B r s
  end.
(** The leaves of the results of an effect. *)
Fixpoint bindr (l : list (nat * V)) (s : nat -> V) : nat -> V :=
  match l with [] => s | (x, a) :: r => upd (bindr r s) (tm v x) a end.
Definition pad (o : op) (n : nat) (rs : list V) : list V :=
  map (fun i => nth i rs (dflt M (ety L o i))) (seq 0 n).

Definition iid (i : inst op) : nat := match i with IPure i _ _ _ => i | IEff i _ _ _ => i end.
Definition is_eff (i : inst op) : bool := match i with IEff _ _ _ _ => true | _ => false end.
Definition pid (B : blk op) (k : nat) : nat :=
  match inst_at B k with Some i => iid i | None => li (lt B) end.
Definition is_anch (B : blk op) (k : nat) : bool :=
  match inst_at B k with Some i => is_eff i || anch (iid i) | None => anch (li (lt B)) end.
Definition taken (l : last op) (env : nat -> V) : option edge :=
  edge_no (les l) (choose M (lo l) (map env (la l))).
Definition enter (s : st V W) (e : edge) : option (st V W) :=
  match blk_at (dst e) with
  | Some B' =>
    let l := combine (ps B') (map (se s) (ea e)) in
    Some (St (dst e) 0 (assign l (se s)) (sw s) (str s) (bindl (dst e) l (ss s)))
  | None => None
  end.
(** One step; [None] where the run ends. *)
Definition step1 (s : st V W) : option (st V W) :=
  match blk_at (sb s) with
  | None => None
  | Some B =>
    if is_anch B (sk s) && stop (pid B (sk s)) then None else
    match inst_at B (sk s) with
    | Some (IPure i x o a) =>
      Some (St (sb s) (S (sk s)) (upd (se s) x (opsem M o (map (se s) a))) (sw s) (str s) (ss s))
    | Some (IEff i o a r) =>
      let (w', rs) := effsem M o (map (se s) a) (sw s) in
      let l := combine r (pad o (length r) rs) in
      Some (St (sb s) (S (sk s)) (assign l (se s)) w' (str s ++ [i]) (bindr l (ss s)))
    | None => match taken (lt B) (se s) with Some e => enter s e | None => None end
    end
  end.
Definition params0 : list nat := match blk_at 0 with Some B => ps B | None => [] end.
Definition arity : nat := length params0.
Definition start (args : list V) (w : W) : st V W :=
  St 0 0 (assign (combine params0 args) (fun _ => dflt M 0)) w []
     (fun t => match knd t with
               | Some (KArg n) => nth n args (dflt M (tty t)) | _ => dflt M (tty t) end).
(** Arguments of the types that the table gives them. *)
Definition args_typed (args : list V) : Prop := forall t n, knd t = Some (KArg n) ->
  typed M (tty t) (nth n args (dflt M (tty t))).
Inductive reach (s0 : st V W) : st V W -> Prop :=
| R0 : reach s0 s0
| RS s s' : reach s0 s -> step1 s = Some s' -> reach s0 s'.

(** ** The check *)
Definition defs (i : inst op) : list nat := match i with IPure _ x _ _ => [x] | IEff _ _ _ r => r
  end.
Definition isdef (x d pos : nat) : bool :=
  match blk_at d with
  | None => false
  | Some B =>
    match pos with
    | 0 => inb x (ps B)
    | S k => match inst_at B k with Some i => inb x (defs i) | None => false end
    end
  end.
(** Whether a value is available in a block behind its first [k] instructions. *)
Definition availb (x b k : nat) : bool :=
  let (d, pos) := dl v x in
  isdef x d pos && inb d (doms v b) && (negb (d =? b) || (pos <=? k)).

(** The edges of a terminator that may be taken. *)
Definition live_edges (l : last op) : list edge :=
  match constants L T (map vcl (la l)) with
  | Some cs => match edge_no (les l) (pick L (lo l) cs) with Some e => [e] | None => [] end
  | None => les l
  end.
Definition chk_param (B : nat) (l : list (nat * nat)) (xa : nat * nat) : bool :=
  let (x, a) := xa in
  if leafb B x then
    match find (fun y => leafb B (fst y) && (tm v (fst y) =? tm v x)) l with
    | Some (_, b) => (vcl a =? vcl b) && (tty (vcl b) =? tty (tm v x))
    | None => false
    end
  else vcl a =? vcl x.
(** ** Merged reads *)
(** A merged read, its memory being a parameter: the access, and the reads found on edges. *)
Definition merged_at (m : nat) : option (access * list nat) :=
  match at_ T m with
  | Some e =>
    match tb e, read_at L T m with
    | ByMerged found, Some a => if isparam (am a) then Some (a, found) else None
    | _, _ => None
    end
  | None => None
  end.
(** Whether a number is that of a block that edges may lead to. *)
Definition is_block (B : nat) : bool := (0 <? B) && (B <? fn v).
(** Whether the block of a merged read dominates a block. *)
Definition is_here (b m : nat) : bool :=
  match merged_at m with
  | Some (a, _) => inb (home v (am a)) (doms v b) && is_block (home v (am a))
  | None => false
  end.
(** Whether a leaf is bound nowhere that a block dominates. *)
Definition is_above (B l : nat) : bool :=
  match knd l with
  | Some KParam => negb (inb B (doms v (home v l))) && negb (home v l =? B)
  | Some (KRes i _) => negb (inb B (doms v (fst (eloc v i))))
  | _ => true
  end.
Definition chk_merged (m : nat) : bool :=
  match merged_at m with
  | Some (a, _) =>
    let B := home v (am a) in
    negb (is_block B) ||
    (inb m (mreads v B) && forallb (AL (is_above B)) (ax a) && AL (is_above B) (cls m))
  | None => true
  end.
(** Over an edge, the read finds its class in the memory that the edge brings. *)
Definition chk_merge (P : nat) (l : list (nat * nat)) (B m : nat) : bool :=
  match merged_at m with
  | Some (a, found) =>
    match find (fun y => leafb B (fst y) && (tm v (fst y) =? am a)) l with
    | Some (_, x) =>
      existsb (fun r => match read_at L T r with
                        | Some f => like L f a && (am f =? vcl x) && (cls r =? cls m) &&
                                    forallb (is_here P) (mdep T r)
                        | None => false
                        end) found
    | None => false
    end
  | None => true
  end.
(** Whether an available value has this leaf. *)
Definition is_held (b k l : nat) : bool :=
  match knd l with
  | Some KParam | Some (KRes _ _) => availb (holder v l) b k && (tm v (holder v l) =? l)
  | _ => true
  end.
Definition chk_rest (b k t : nat) : bool :=
  match mdep T t with
  | [] => true
  | ms => forallb (is_here b) ms &&
          (let c := cls t in forallb (is_held b k) (if leaf c then [c] else deps T c))
  end.
Definition chk_sole (P : nat) (e : edge) : bool :=
  match sole v (dst e) with Some Q => Q =? P | None => true end.
Definition chk_edge (P len : nat) (e : edge) : bool :=
  chk_sole P e &&
  (lv v (dst e) && negb (dst e =? 0) &&
  match blk_at (dst e) with
  | None => false
  | Some B' =>
    (length (ea e) =? length (ps B')) && forallb (fun a => availb a P len) (ea e) &&
    match doms v (dst e) with h :: r => (h =? dst e) && sub (doms v P) r | [] => true end &&
    (let l := combine (ps B') (ea e) in
     forallb (chk_param (dst e) l) l && forallb (chk_merge P l (dst e)) (mreads v (dst e)))
  end).
Definition loc_is (x b pos : nat) : bool := (fst (dl v x) =? b) && (snd (dl v x) =? pos).
Definition chk_args (cs : list nat) (o : op) (a : list nat) : bool :=
  nats_eqb cs (map vcl a) ||
  (comm L o && (length a =? 2) && nats_eqb cs (rev (map vcl a))).
Definition chk_inst (b k : nat) (i : inst op) : bool :=
  match i with
  | IPure _ x o a =>
    forallb (fun y => availb y b k) a && loc_is x b (S k) &&
    match knd (tm v x) with Some (KOp o' cs) => op_eqb L o' o && chk_args cs o a | _ => false end &&
    chk_rest b k (tm v x)
  | IEff i o a r =>
    anch i && forallb (fun x => availb x b k) a && forallb (fun x => loc_is x b (S k)) r &&
    nodupb r && (fst (eloc v i) =? b) && (snd (eloc v i) =? k) &&
    indexed (fun n x => match knd (tm v x) with
                        | Some (KRes j m) => (j =? i) && (m =? n) && (tty (tm v x) =? ety L o n)
                        | _ => false end) 0 r
  end.
Definition chk_last (b len : nat) (l : last op) : bool :=
  forallb (fun x => availb x b len) (la l) && forallb (chk_edge b len) (live_edges l).
Definition chk_block (b : nat) : bool :=
  negb (lv v b) ||
  match blk_at b with
  | None => false
  | Some B =>
    forallb (fun x => loc_is x b 0) (ps B) && nodupb (ps B) &&
    below (bn B) (fun k => match inst_at B k with Some i => chk_inst b k i | None => false end) &&
    chk_last b (bn B) (lt B)
  end.
Definition chk_first : bool :=
  lv v 0 && nats_eqb (doms v 0) [0] && (0 <? fn v) &&
  indexed (fun n x => match knd (tm v x) with Some (KArg m) => m =? n | _ => false end) 0 params0.
Definition chk_version : bool :=
  chk_first && below (fn v) chk_block && below (tn T) chk_merged.
End Version.
