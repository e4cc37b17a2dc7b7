(** The language, the table of terms, and why a class is one thing.

    A term stands for a function of its leaves. All operations are total: one that traps on a
    machine has some fixed result here, and addresses wrap. So equality of classes needs no side
    condition, and is transitive. *)
From Coq Require Import List Arith Lia Bool.
Import ListNotations.
From Osier Require Import Util.

Inductive kind (op : Type) :=
| KArg (n : nat)              (* an argument of the function; memory is the last *)
| KParam                      (* bound where a block is entered *)
| KRes (i n : nat)            (* the n-th result of the effect i *)
| KOp (o : op) (args : list nat).
Arguments KArg {op}. Arguments KParam {op}. Arguments KRes {op}. Arguments KOp {op}.
Inductive reason (R : Type) := ByItself | ByFold | ByRule (r : R).
Arguments ByItself {R}. Arguments ByFold {R}. Arguments ByRule {R}.
Record term (op R : Type) := Term { tk : kind op; tc : nat; tb : reason R }.
Arguments Term {op R}. Arguments tk {op R}. Arguments tc {op R}. Arguments tb {op R}.

(** A table looks terms up by a function, which the extracted program reads from an array. [deps]
    claims for each term a list of leaves that contains all leaves of the term. *)
Record table (op R : Type) := Table {
  tn : nat;
  tg : nat -> term op R;
  deps : nat -> list nat
}.
Arguments Table {op R}. Arguments tn {op R}. Arguments tg {op R}. Arguments deps {op R}.

(** What the checker knows of the language: it runs this part. Constants are of type [C]. *)
Record Lang (C op R : Type) := {
  op_eqb : op -> op -> bool;
  ceqb : C -> C -> bool;
  comm : op -> bool;                          (* the two operands may be exchanged *)
  fold : op -> list C -> option C;            (* the result on constants, where it is known *)
  pick : op -> list C -> nat;                 (* the edge that a terminator takes *)
  asks : op -> op -> C -> bool;               (* [asks b o z]: branch [b] takes for [o x z] the
                                                 edge that it takes for [x] *)
  rule_ok : table op R -> R -> nat -> bool    (* the term is an instance of a rule *)
}.
Arguments op_eqb {C op R}. Arguments ceqb {C op R}. Arguments comm {C op R}. Arguments fold {C op R}.
Arguments pick {C op R}. Arguments asks {C op R}. Arguments rule_ok {C op R}.

(** What the language means. No program runs this part. Contents of values are of type [V], which
    holds bits and memories alike; [W] is the world that effects read and change. *)
Record Sem (C op V W : Type) := {
  dflt : V;
  val : C -> V;
  opsem : op -> list V -> V;
  effsem : op -> list V -> W -> W * list V;
  choose : op -> list V -> nat
}.
Arguments dflt {C op V W}. Arguments val {C op V W}. Arguments opsem {C op V W}.
Arguments effsem {C op V W}. Arguments choose {C op V W}.

(** The duties of the part that runs towards the meaning. *)
Record Faithful {C op R V W} (L : Lang C op R) (M : Sem C op V W) : Prop := {
  op_eqb_ok : forall a b, op_eqb L a b = true -> a = b;
  ceqb_ok : forall a b, ceqb L a b = true -> a = b;
  comm_ok : forall o a b, comm L o = true -> opsem M o [a; b] = opsem M o [b; a];
  fold_ok : forall o cs c, fold L o cs = Some c -> opsem M o (map (val M) cs) = val M c;
  pick_ok : forall o cs, choose M o (map (val M) cs) = pick L o cs;
  asks_ok : forall b o z x, asks L b o z = true ->
    choose M b [opsem M o [x; val M z]] = choose M b [x] /\
    choose M b [opsem M o [val M z; x]] = choose M b [x]
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
Definition leaf (t : nat) : bool := match knd t with Some (KOp _ _) => false | _ => true end.

(** The contents of a term, given those of the leaves. *)
Fixpoint den (n : nat) (s : nat -> V) (t : nat) : V :=
  match n with
  | 0 => s t
  | S n' =>
    match knd t with Some (KOp o args) => opsem M o (map (den n' s) args) | _ => s t end
  end.
Definition D (s : nat -> V) (t : nat) : V := den (S t) s t.

(** Whether all leaves of a term pass a test. *)
Definition AL (P : nat -> bool) (t : nat) : bool := if leaf t then P t else forallb P (deps T t).

(** ** The check *)
Definition constant (t : nat) : option C :=
  match knd t with Some (KOp o []) => fold L o [] | _ => None end.
Fixpoint constants (l : list nat) : option (list C) :=
  match l with
  | [] => Some []
  | a :: r =>
    match constant a, constants r with Some x, Some y => Some (x :: y) | _, _ => None end
  end.
Definition folds (k : kind op) (c : nat) : bool :=
  match k with
  | KOp o args =>
    match constants args, constant c with
    | Some vs, Some z => match fold L o vs with Some y => ceqb L y z | None => false end
    | _, _ => false
    end
  | _ => false
  end.
(** The leaves listed for an operand are listed for the operation. *)
Definition chk_deps (t a : nat) : bool :=
  if leaf a then inb a (deps T t) else sub (deps T t) (deps T a).
Definition chk_reason (t : nat) (e : term op R) : bool :=
  match tb e with
  | ByItself => tc e =? t
  | ByFold => (tc e <? t) && folds (tk e) (tc e)
  | ByRule r => (tc e <? t) && rule_ok L T r t
  end.
Definition chk_term (t : nat) : bool :=
  match at_ t with
  | None => false
  | Some e =>
    match tk e with
    | KOp _ args => forallb (fun a => (a <? t) && (cls a =? a) && chk_deps t a) args
    | _ => match tb e with ByItself => true | _ => false end
    end && chk_reason t e
  end.
Definition chk_table : bool := below (tn T) chk_term.

(** What is asked of a rule: its instance is equal to its class whatever the leaves stand for,
    given that all earlier terms are. *)
Definition equal_to_class s t := D s t = D s (cls t).
Definition RulesHold := forall r t, chk_table = true -> rule_ok L T r t = true ->
  forall s, (forall u, u < t -> equal_to_class s u) -> equal_to_class s t.

Hypothesis F : Faithful L M.
Hypothesis rules : RulesHold.
Hypothesis table_ok : chk_table = true.

Lemma at_lt t e : at_ t = Some e -> t < tn T.
Proof. unfold at_. destruct (t <? tn T) eqn:E; [|discriminate]. intros _. now apply Nat.ltb_lt. Qed.
Lemma chk_of t e : at_ t = Some e -> chk_term t = true.
Proof. intro H. apply (below_ok _ _ table_ok). eapply at_lt; eauto. Qed.
Lemma op_arg t o args a : knd t = Some (KOp o args) -> In a args ->
  a < t /\ cls a = a /\ chk_deps t a = true.
Proof.
  unfold knd. destruct (at_ t) as [e|] eqn:E; simpl; [|discriminate]. intros K Ha.
  inversion K as [K']. pose proof (chk_of _ _ E) as Ch. unfold chk_term in Ch. rewrite E, K' in Ch.
  apply andb_true_iff in Ch. destruct Ch as [Ch _]. rewrite forallb_forall in Ch. apply Ch in Ha.
  bools. auto.
Qed.
Lemma den_enough s : forall t n, t < n -> den n s t = D s t.
Proof.
  induction t as [t IH] using lt_wf_ind. intros n Hn. unfold D. destruct n as [|n]; [lia|]. simpl.
  destruct (knd t) as [[n0| |i n0|o args]|] eqn:K; auto.
  f_equal. apply map_ext_in. intros a Ha. destruct (op_arg _ _ _ _ K Ha) as [La _].
  rewrite IH by lia. symmetry. apply IH; lia.
Qed.
Lemma D_op s t o args : knd t = Some (KOp o args) -> D s t = opsem M o (map (D s) args).
Proof.
  intro K. unfold D at 1. simpl. rewrite K. f_equal. apply map_ext_in. intros a Ha.
  apply den_enough. eapply op_arg; eauto.
Qed.
Lemma D_leaf s t : leaf t = true -> D s t = s t.
Proof.
  unfold leaf, D. simpl. destruct (knd t) as [[n0| |i n0|o args]|]; auto; discriminate.
Qed.
Lemma cls_leaf t : leaf t = true -> cls t = t.
Proof.
  intro Lf. unfold cls. destruct (at_ t) as [e|] eqn:E; auto.
  pose proof (chk_of _ _ E) as Ch. unfold chk_term, chk_reason in Ch. rewrite E in Ch.
  unfold leaf, knd in Lf. rewrite E in Lf. simpl in Lf.
  destruct (tk e) eqn:K; try discriminate; destruct (tb e); simpl in Ch; try discriminate;
    now apply Nat.eqb_eq.
Qed.
Lemma AL_agree P s s' t : AL P t = true -> (forall l, P l = true -> s l = s' l) -> D s t = D s' t.
Proof.
  intros A H. revert A. induction t as [t IH] using lt_wf_ind. unfold AL. intro A.
  destruct (leaf t) eqn:Lf; [rewrite !D_leaf by auto; auto|].
  destruct (knd t) as [[n0| |i n0|o args]|] eqn:K; try (unfold leaf in Lf; rewrite K in Lf; discriminate).
  rewrite !(D_op _ _ _ _ K). f_equal. apply map_ext_in. intros a Ha.
  destruct (op_arg _ _ _ _ K Ha) as [La [_ Dp]]. apply IH; auto. unfold AL, chk_deps in *.
  rewrite forallb_forall in A. destruct (leaf a).
  - apply A. now apply inb_In.
  - apply forallb_forall. intros x Hx. apply A. eapply sub_ok; eauto.
Qed.

Lemma constant_D t v s : constant t = Some v -> D s t = val M v.
Proof.
  unfold constant. destruct (knd t) as [[n0| |i n0|o [|a args]]|] eqn:K; try discriminate.
  intro H. rewrite (D_op _ _ _ _ K). now apply (fold_ok _ _ F) in H.
Qed.
Lemma constants_D l : forall vs s, constants l = Some vs -> map (D s) l = map (val M) vs.
Proof.
  induction l as [|a r IH]; simpl; intros vs s H; [now inversion H|].
  destruct (constant a) eqn:Ca; [|discriminate]. destruct (constants r) eqn:Cr; [|discriminate].
  inversion H; subst. simpl. f_equal; auto using constant_D.
Qed.
(** Terms of one class are equal whatever the leaves stand for. *)
Theorem class_sound s : forall t, D s t = D s (cls t).
Proof.
  induction t as [t IH] using lt_wf_ind.
  destruct (at_ t) as [e|] eqn:E; [|unfold cls; now rewrite E].
  pose proof (chk_of _ _ E) as Ch. unfold chk_term in Ch. rewrite E in Ch.
  apply andb_true_iff in Ch. destruct Ch as [_ Ch].
  assert (Hc: cls t = tc e) by (unfold cls; now rewrite E). unfold chk_reason in Ch.
  destruct (tb e) eqn:B; bools.
  - now rewrite Hc, Ch.
  - unfold folds in H0. destruct (tk e) as [n0| |i n0|o args] eqn:K; try discriminate.
    destruct (constants args) eqn:A; [|discriminate].
    destruct (constant (tc e)) eqn:Z; [|discriminate].
    destruct (fold L o l) as [y|] eqn:Fo; [|discriminate]. apply (ceqb_ok _ _ F) in H0. subst y.
    rewrite Hc, (constant_D _ _ s Z). rewrite (D_op _ _ o args).
    + rewrite (constants_D _ _ s A). now apply (fold_ok _ _ F).
    + unfold knd. rewrite E. simpl. now rewrite K.
  - now apply (rules _ _ table_ok H0).
Qed.

(** ** Independence: the leaves that the contents of a class do not change with *)
Definition indep (c l : nat) := forall s x, D (upd s l x) c = D s c.
Lemma indep_cls t l : indep t l -> indep (cls t) l.
Proof. intros H s x. now rewrite <- !class_sound. Qed.
Lemma indep_op t o args l :
  knd t = Some (KOp o args) -> (forall a, In a args -> indep a l) -> indep t l.
Proof.
  intros K H s x. rewrite !(D_op _ _ _ _ K). f_equal. apply map_ext_in. intros a Ha. now apply H.
Qed.
Lemma indep_leaf t l : leaf t = true -> t <> l -> indep t l.
Proof. intros Lf N s x. rewrite !D_leaf by auto. now apply upd_other. Qed.
End Terms.
