(** The language, the table of terms, and what a term stands for.

    A term stands for a function of its leaves. All operations are total: one that traps on a
    machine has some fixed result here, and addresses wrap. So equality of classes needs no side
    condition but types, and is transitive. *)
From Coq Require Import List Arith ZArith Lia Bool.
Import ListNotations.
From Osier Require Import Util.

Inductive kind (op : Type) :=
| KArg (n : nat)              (* an argument of the function; memory is the last *)
| KParam                      (* bound where a block is entered *)
| KRes (i n : nat)            (* the n-th result of the effect i *)
| KOp (o : op) (args : list nat).
Arguments KArg {op}. Arguments KParam {op}. Arguments KRes {op}. Arguments KOp {op}.
(** Why a term belongs to its class: as in docs/certificates.md.
  A [via] is a term of the class of an
    address that shows it as a sum. *)
Inductive reason (R : Type) :=
| ByItself
| ByFold
| BySum (result : nat)
| ByApart (via via' : option nat) (result : nat)
| ByStored (via via' : option nat)
| ByCovers (result : nat)
| BySwaps (via via' : option nat) (inner result : nat)
| ByMerged (found : list nat)
| ByRule (r : R).
Arguments ByItself {R}. Arguments ByFold {R}. Arguments BySum {R}. Arguments ByApart {R}.
Arguments ByStored {R}. Arguments ByCovers {R}. Arguments BySwaps {R}. Arguments ByMerged {R}.
Arguments ByRule {R}.
Record term (op R : Type) := Term { tk : kind op; tc : nat; ty : nat; tb : reason R }.
Arguments Term {op R}. Arguments tk {op R}. Arguments tc {op R}. Arguments ty {op R}.
Arguments tb {op R}.

(** A table looks terms up by a function, which the extracted program reads from an array. [deps]
    claims for each term a list of leaves that contains all leaves of the term.
      A merged read has its
    class only where its block has been entered, so [mdep] claims the merged reads that a class
      rests
    on. *)
Record table (op R : Type) := Table {
  tn : nat;
  tg : nat -> term op R;
  deps : nat -> list nat;
  mdep : nat -> list nat
}.
Arguments Table {op R}. Arguments tn {op R}. Arguments tg {op R}. Arguments deps {op R}.
Arguments mdep {op R}.
(** Whether the class of [u] rests on merged reads alone on which the class of [t] rests, too. *)
Definition relies {op R} (T : table op R) (t u : nat) : bool :=
  forallb (fun m => inb m (mdep T t)) (mdep T u).

(** Integer arithmetic modulo 2^w, as far as sums go. *)
Inductive arith := AAdd | ASub | AConst.
(** A part of the state. A range of bytes lies in a memory and begins at the address operand plus an
    offset, modulo 2^w. A cell is a global, the size of a memory, or the words of references. *)
Inductive place := Bytes (m : nat) (offset len : Z) (w : Z) | Cell (n : nat).

(** What the checker knows of the language: it runs this part. Constants are of type [C], and types
    are numbers. *)
Record Lang (C op R : Type) := {
  op_eqb : op -> op -> bool;
  ceqb : C -> C -> bool;
  comm : op -> bool;                          (* the two operands may be exchanged *)
  fold : op -> list C -> option C;            (* the result on constants, where it is known *)
  pick : op -> list C -> nat;                 (* the edge that a terminator takes *)
  asks : op -> op -> C -> bool;               (* [asks b o z]: branch [b] takes for [o x z] the
                                                 edge that it takes for [x] *)
  rty : op -> nat;                            (* the type of the result *)
  signed : op -> list nat -> bool;            (* the operation takes operands of these types *)
  ety : op -> nat -> nat;                     (* the type of a result of an effect *)
  arith_of : op -> option (arith * Z);
  int_type : Z -> nat;                        (* the type of integers of this width *)
  zc : C -> Z;
  reads : op -> option place;                 (* the place that a read reads *)
  writes : op -> option place;                (* the place that a write writes *)
  gives_back : op -> op -> bool;              (* [gives_back w r]: [r] finds just what [w] wrote *)
  rule_ok : table op R -> R -> nat -> bool    (* the term is an instance of a rule *)
}.
Arguments op_eqb {C op R}. Arguments ceqb {C op R}. Arguments comm {C op R}.
  Arguments fold {C op R}.
Arguments pick {C op R}. Arguments asks {C op R}. Arguments rty {C op R}. Arguments signed {C op R}.
Arguments ety {C op R}. Arguments arith_of {C op R}. Arguments int_type {C op R}.
Arguments zc {C op R}. Arguments reads {C op R}. Arguments writes {C op R}.
Arguments gives_back {C op R}. Arguments rule_ok {C op R}.

(** A location of the state. *)
Inductive loc := LByte (m : nat) (a : Z) | LCell (n : nat).
(** What the language means. No program runs this part. Contents of values are of type [V], which
    holds bits and memories alike; [W] is the world that effects read and change. *)
Record Sem (C op V W : Type) := {
  typed : nat -> V -> Prop;
  dflt : nat -> V;
  val : C -> V;
  opsem : op -> list V -> V;
  effsem : op -> list V -> W -> W * list V;
  choose : op -> list V -> nat;
  num : V -> Z;                               (* the number that bits stand for *)
  norm : Z -> Z -> V;                         (* the integer of this width with this number *)
  look : V -> loc -> V                        (* the contents of a location of a memory *)
}.
Arguments typed {C op V W}. Arguments dflt {C op V W}. Arguments val {C op V W}.
Arguments opsem {C op V W}. Arguments effsem {C op V W}. Arguments choose {C op V W}.
Arguments num {C op V W}. Arguments norm {C op V W}. Arguments look {C op V W}.

(** The location of a byte of a range, and whether a place at an address has a location. *)
Definition within (num : Z) (p : place) (l : loc) : Prop :=
  match p, l with
  | Bytes m off len w, LByte m' a => m' = m /\ exists k, 0 <= k < len /\ a = (num + off + k)
    mod 2 ^ w
  | Cell n, LCell n' => n' = n
  | _, _ => False
  end%Z.

(** Whether a list of operands has the address that a place asks for. *)
Definition addressed {V} (p : place) (xs : list V) : Prop :=
  match p with Bytes _ _ _ _ => xs <> [] | Cell _ => True end.

(** The duties of the part that runs towards the meaning. *)
Record Faithful {C op R V W} (L : Lang C op R) (M : Sem C op V W) : Prop := {
  op_eqb_ok : forall a b, op_eqb L a b = true -> a = b;
  ceqb_ok : forall a b, ceqb L a b = true -> a = b;
  comm_ok : forall o a b, comm L o = true -> opsem M o [a; b] = opsem M o [b; a];
  fold_ok : forall o cs c, fold L o cs = Some c -> opsem M o (map (val M) cs) = val M c;
  pick_ok : forall o cs, choose M o (map (val M) cs) = pick L o cs;
  asks_ok : forall b o z x, asks L b o z = true ->
    choose M b [opsem M o [x; val M z]] = choose M b [x] /\
    choose M b [opsem M o [val M z; x]] = choose M b [x];
  (* Every type has contents, and operations and effects give contents of their types. *)
  dflt_typed : forall t, typed M t (dflt M t);
  op_typed : forall o vs, typed M (rty L o) (opsem M o vs);
  eff_typed : forall o vs w n d,
    typed M (ety L o n) d -> typed M (ety L o n) (nth n (snd (effsem M o vs w)) d);
  (* Integers of a width are the numbers modulo 2^w. *)
  zc_ok : forall c, num M (val M c) = zc L c;
  norm_num : forall w x, typed M (int_type L w) x -> norm M w (num M x) = x;
  norm_mod : forall w m n, (m mod 2 ^ w = n mod 2 ^ w)%Z -> norm M w m = norm M w n;
  num_norm : forall w n, (num M (norm M w n) mod 2 ^ w = n mod 2 ^ w)%Z;
  arith_ok : forall o a w, arith_of L o = Some (a, w) -> (0 <= w)%Z /\ rty L o = int_type L w /\
    match a with
    | AAdd => forall x y, opsem M o [x; y] = norm M w (num M x + num M y)
    | ASub => forall x y, opsem M o [x; y] = norm M w (num M x - num M y)
    | AConst => True
    end;
  (* A read depends on its place alone. The first operand is the address, the last the memory. *)
  read_ok : forall o p xs m m', reads L o = Some p -> addressed p xs ->
    (forall l, within (num M (hd m xs)) p l -> look M m l = look M m' l) ->
    opsem M o (xs ++ [m]) = opsem M o (xs ++ [m']);
  (* A write changes its place alone, and what it leaves there depends on its operands alone. *)
  write_out : forall o p xs m l, writes L o = Some p -> addressed p xs ->
    ~ within (num M (hd m xs)) p l ->
    look M (opsem M o (xs ++ [m])) l = look M m l;
  write_in : forall o p xs m m' l, writes L o = Some p -> addressed p xs ->
    within (num M (hd m xs)) p l ->
    look M (opsem M o (xs ++ [m])) l = look M (opsem M o (xs ++ [m'])) l;
  (* Memories behind writes are equal if all their contents are. *)
  memory_ext : forall o o' p p' vs vs', writes L o = Some p -> writes L o' = Some p' ->
    (forall l, look M (opsem M o vs) l = look M (opsem M o' vs') l) ->
    opsem M o vs = opsem M o' vs';
  gives_back_ok : forall o o' p p' xs x ys m, gives_back L o o' = true ->
    writes L o = Some p -> reads L o' = Some p' -> addressed p xs -> addressed p' ys ->
    typed M (rty L o') x ->
    (forall l, within (num M (hd x xs)) p l <->
               within (num M (hd (opsem M o (xs ++ [x; m])) ys)) p' l) ->
    opsem M o' (ys ++ [opsem M o (xs ++ [x; m])]) = x;
  place_ok : forall o p, reads L o = Some p \/ writes L o = Some p ->
    match p with Bytes _ _ len w => (0 <= w /\ 0 < len <= 2 ^ w)%Z | Cell _ => True end
}.

Section Terms.
Context {C op R V W : Type} (L : Lang C op R) (M : Sem C op V W).
Variable T : table op R.

Definition upd (s : nat -> V) (x : nat) (v : V) : nat -> V := fun y => if y =? x then v else s y.
Lemma upd_same s x v : upd s x v x = v.
Proof. unfold upd. now rewrite Nat.eqb_refl. Qed.
Lemma upd_other s x v y : y <> x -> upd s x v y = s y.
Proof. unfold upd. intro H. apply Nat.eqb_neq in H. now rewrite H. Qed.

Definition at_ (t : nat) : option (term op R) := if t <? tn T then Some (tg T t) else None.
Definition knd (t : nat) : option (kind op) := option_map tk (at_ t).
Definition cls (t : nat) : nat := match at_ t with Some e => tc e | None => t end.
Definition tty (t : nat) : nat := match at_ t with Some e => ty e | None => 0 end.
Definition leaf (t : nat) : bool := match knd t with Some (KOp _ _) => false | _ => true end.

(** The contents of a term, given those of the leaves. *)
Fixpoint den (n : nat) (s : nat -> V) (t : nat) : V :=
  match n with
  | 0 => s t
  | S n' =>
    match knd t with Some (KOp o args) => opsem M o (map (den n' s) args) | _ => s t end
  end.
Definition D (s : nat -> V) (t : nat) : V := den (S t) s t.
(** Leaves that hold contents of their types. *)
Definition TL (s : nat -> V) : Prop := forall l, typed M (tty l) (s l).

(** Whether all leaves of a term pass a test. *)
Definition AL (P : nat -> bool) (t : nat) : bool := if leaf t then P t else forallb P (deps T t).

(** ** The check of shapes: operands come first, and types fit. *)
Definition constant (t : nat) : option C :=
  match knd t with Some (KOp o []) => fold L o [] | _ => None end.
Fixpoint constants (l : list nat) : option (list C) :=
  match l with
  | [] => Some []
  | a :: r =>
    match constant a, constants r with Some x, Some y => Some (x :: y) | _, _ => None end
  end.
(** The leaves listed for an operand are listed for the operation. *)
Definition chk_deps (t a : nat) : bool :=
  if leaf a then inb a (deps T t) else sub (deps T t) (deps T a).
Definition chk_shape (t : nat) : bool :=
  match at_ t with
  | None => false
  | Some e =>
    match tk e with
    | KOp o args =>
      forallb (fun a => (a <? t) && (cls a =? a) && chk_deps t a) args &&
      (ty e =? rty L o) && signed L o (map tty args)
    | _ => match tb e with ByItself => tc e =? t | _ => false end
    end
  end.
Definition chk_shapes : bool := below (tn T) chk_shape.

Hypothesis F : Faithful L M.
Hypothesis shapes_ok : chk_shapes = true.

Lemma at_lt t e : at_ t = Some e -> t < tn T.
Proof. unfold at_. destruct (t <? tn T) eqn:E; [|discriminate]. intros _. now apply Nat.ltb_lt. Qed.
Lemma shape_of t e : at_ t = Some e -> chk_shape t = true.
Proof. intro H. apply (below_ok _ _ shapes_ok). eapply at_lt; eauto. Qed.
Lemma op_shape t o args : knd t = Some (KOp o args) ->
  tty t = rty L o /\ signed L o (map tty args) = true /\
  forall a, In a args -> a < t /\ cls a = a /\ chk_deps t a = true.
Proof.
  unfold knd, tty at 1. destruct (at_ t) as [e|] eqn:E; simpl; [|discriminate]. intros K.
  inversion K as [K']. pose proof (shape_of _ _ E) as Ch. unfold chk_shape in Ch. rewrite E, K' in
    Ch.
  apply andb_true_iff in Ch. destruct Ch as [Ch S1]. apply andb_true_iff in Ch.
    destruct Ch as [Ch S2].
  split; [now apply Nat.eqb_eq|]. split; auto. intros a Ha. rewrite forallb_forall in Ch.
  apply Ch in Ha. bools. auto.
Qed.
Lemma den_enough s : forall t n, t < n -> den n s t = D s t.
Proof.
  induction t as [t IH] using lt_wf_ind. intros n Hn. unfold D. destruct n as [|n]; [lia|]. simpl.
  destruct (knd t) as [[n0| |i n0|o args]|] eqn:K; auto.
  f_equal. apply map_ext_in. intros a Ha.
  destruct (proj2 (proj2 (op_shape _ _ _ K)) a Ha) as [La _].
  rewrite IH by lia. symmetry. apply IH; lia.
Qed.
Lemma op_D s t o args : knd t = Some (KOp o args) -> D s t = opsem M o (map (D s) args).
Proof.
  intro K. unfold D at 1. simpl. rewrite K. f_equal. apply map_ext_in. intros a Ha.
  apply den_enough. eapply op_shape; eauto.
Qed.
Lemma D_leaf s t : leaf t = true -> D s t = s t.
Proof.
  unfold leaf, D. simpl. destruct (knd t) as [[n0| |i n0|o args]|]; auto; discriminate.
Qed.
Lemma leaf_op t : leaf t = false -> exists o args, knd t = Some (KOp o args).
Proof. unfold leaf. destruct (knd t) as [[n0| |i n0|o args]|]; try discriminate. eauto. Qed.
Lemma leaf_cls t : leaf t = true -> cls t = t.
Proof.
  intro Lf. unfold cls. destruct (at_ t) as [e|] eqn:E; auto.
  pose proof (shape_of _ _ E) as Ch. unfold chk_shape in Ch. rewrite E in Ch.
  unfold leaf, knd in Lf. rewrite E in Lf. simpl in Lf.
  destruct (tk e) eqn:K; try discriminate; destruct (tb e); simpl in Ch; try discriminate;
    now apply Nat.eqb_eq.
Qed.
Lemma D_typed s t : TL s -> typed M (tty t) (D s t).
Proof.
  intro H. destruct (leaf t) eqn:Lf; [rewrite D_leaf by auto; apply H|].
  destruct (leaf_op _ Lf) as [o [args K]]. rewrite (op_D _ _ _ _ K).
  destruct (op_shape _ _ _ K) as [-> _]. apply (op_typed _ _ F).
Qed.
Lemma AL_agree0 P s s' t : AL P t = true -> (forall l, P l = true -> s l = s' l) -> D s t = D s' t.
Proof.
  intros A H. revert A. induction t as [t IH] using lt_wf_ind. unfold AL. intro A.
  destruct (leaf t) eqn:Lf; [rewrite !D_leaf by auto; auto|].
  destruct (leaf_op _ Lf) as [o [args K]]. rewrite !(op_D _ _ _ _ K). f_equal.
  apply map_ext_in. intros a Ha.
  destruct (proj2 (proj2 (op_shape _ _ _ K)) a Ha) as [La [_ Dp]]. apply IH; auto.
  unfold AL, chk_deps in *. rewrite forallb_forall in A. destruct (leaf a).
  - apply A. now apply inb_In.
  - apply forallb_forall. intros x Hx. apply A. eapply sub_ok; eauto.
Qed.
Lemma const_D t v s : constant t = Some v -> D s t = val M v.
Proof.
  unfold constant. destruct (knd t) as [[n0| |i n0|o [|a args]]|] eqn:K; try discriminate.
  intro H. rewrite (op_D _ _ _ _ K). now apply (fold_ok _ _ F) in H.
Qed.
Lemma consts_D l : forall vs s, constants l = Some vs -> map (D s) l = map (val M) vs.
Proof.
  induction l as [|a r IH]; simpl; intros vs s H; [now inversion H|].
  destruct (constant a) eqn:Ca; [|discriminate]. destruct (constants r) eqn:Cr; [|discriminate].
  inversion H; subst. simpl. f_equal; auto using const_D.
Qed.
End Terms.
