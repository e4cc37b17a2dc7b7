(** Classes: terms of a class are equal whatever their leaves stand for. *)
From Coq Require Import List Arith ZArith Lia Bool.
Import ListNotations.
From Osier Require Import Util Terms Places Memory.

Section Classes.
Context {C op R V W : Type} (L : Lang C op R) (M : Sem C op V W).
Variable T : table op R.
Notation D := (D M T).
Notation TL := (TL M T).
Notation knd := (knd T).
Notation cls := (cls T).
Notation leaf := (leaf T).
Notation AL := (AL T).
Notation constant := (constant L T).
Notation constants := (constants L T).

(** ** The check of reasons *)
Definition folds (k : kind op) (c : nat) : bool :=
  match k with
  | KOp o args =>
    match constants args, constant c with
    | Some vs, Some z => match fold L o vs with Some y => ceqb L y z | None => false end
    | _, _ => false
    end
  | _ => false
  end.
Definition chk_reason (t : nat) (e : term op R) : bool :=
  match tb e with
  | ByItself => tc e =? t
  | ByFold => (tc e <? t) && folds (tk e) (tc e)
  | BySum r => (r <? t) && relies T t r && (cls r =? tc e) && is_sum L T t r
  | ByApart v v' r => is_read_apart L T t (tc e) v v' r
  | ByStored v v' => is_stored L T t (tc e) v v'
  | ByCovers r => is_covering L T t (tc e) r
  | BySwaps v v' i r => is_swap L T t (tc e) v v' i r
  | ByMerged _ => inb t (mdep T t)
  | ByRule r => rule_ok L T r t
  end.
Definition chk_term (t : nat) : bool :=
  match at_ T t with
  | None => false
  | Some e => chk_shape L T t && chk_reason t e
  end.
Definition chk_table : bool := chk_shapes L T && below (tn T) chk_term.

(** The merged reads on which the class of a term rests have their classes. *)
Definition merged_ok (s : nat -> V) (t : nat) : Prop :=
  forall m, In m (mdep T t) -> D s m = D s (cls m).
(** What is asked of a rule: its instance is equal to its class for all contents of the right types
    of the leaves, given that earlier terms are. *)
Definition RulesHold := forall r t, chk_table = true -> rule_ok L T r t = true ->
  forall s, TL s -> (forall u, u < t -> relies T t u = true -> D s u = D s (cls u)) ->
  D s t = D s (cls t).

Hypothesis F : Faithful L M.
Hypothesis rules : RulesHold.
Hypothesis table_ok : chk_table = true.

Lemma shapes : chk_shapes L T = true.
Proof. unfold chk_table in table_ok. now apply andb_true_iff in table_ok. Qed.
Lemma D_op s t o args : knd t = Some (KOp o args) -> D s t = opsem M o (map (D s) args).
Proof. apply (op_D L M T shapes). Qed.
Lemma cls_leaf t : leaf t = true -> cls t = t.
Proof. apply (leaf_cls L T shapes). Qed.
Lemma AL_agree P s s' t : AL P t = true -> (forall l, P l = true -> s l = s' l) -> D s t = D s' t.
Proof. apply (AL_agree0 L M T shapes). Qed.
Lemma constant_D t v s : constant t = Some v -> D s t = val M v.
Proof. apply (const_D L M T F shapes). Qed.
Lemma constants_D l vs s : constants l = Some vs -> map (D s) l = map (val M) vs.
Proof. apply (consts_D L M T F shapes). Qed.
Lemma D_type s t : TL s -> typed M (tty T t) (D s t).
Proof. apply (D_typed L M T F shapes). Qed.

(** Terms of one class are equal whatever the leaves stand for. *)
Theorem class_sound s : TL s -> forall t, merged_ok s t -> D s t = D s (cls t).
Proof.
  intro Ts. induction t as [t IH] using lt_wf_ind. intro Mg.
  destruct (at_ T t) as [e|] eqn:E; [|unfold Terms.cls; now rewrite E].
  assert (Before: forall u, u < t -> relies T t u = true -> D s u = D s (cls u)).
  { intros u Lu Rl. apply IH; auto. intros m Hm. apply Mg. unfold relies in Rl.
    rewrite forallb_forall in Rl. apply inb_In. auto. }
  pose proof table_ok as TO. unfold chk_table in TO. apply andb_true_iff in TO.
    destruct TO as [_ TO].
  pose proof (below_ok _ _ TO _ (at_lt T _ _ E)) as Ch. unfold chk_term in Ch. rewrite E in Ch.
  apply andb_true_iff in Ch. destruct Ch as [_ Ch].
  assert (Hc: cls t = tc e) by (unfold Terms.cls; now rewrite E). unfold chk_reason in Ch.
  destruct (tb e) eqn:B.
  - apply Nat.eqb_eq in Ch. now rewrite Hc, Ch.
  - apply andb_true_iff in Ch. destruct Ch as [_ Fo]. unfold folds in Fo.
    destruct (tk e) as [n0| |i n0|o args] eqn:K; try discriminate.
    destruct (constants args) eqn:A; [|discriminate].
    destruct (constant (tc e)) eqn:Z; [|discriminate].
    destruct (fold L o l) as [y|] eqn:Fl; [|discriminate]. apply (ceqb_ok _ _ F) in Fo. subst y.
    rewrite Hc, (constant_D _ _ s Z). rewrite (D_op _ _ o args).
    + rewrite (constants_D _ _ s A). now apply (fold_ok _ _ F).
    + unfold Terms.knd. rewrite E. simpl. now rewrite K.
  - apply andb_true_iff in Ch. destruct Ch as [Ch Sm]. apply andb_true_iff in Ch.
    destruct Ch as [Ch Cr]. apply andb_true_iff in Ch. destruct Ch as [Lr Rl].
    apply Nat.ltb_lt in Lr. apply Nat.eqb_eq in Cr.
    rewrite (is_sum_ok L M T F shapes s Ts _ _ Sm), Hc, <- Cr. auto.
  - rewrite Hc. eapply (apart_right L M T F shapes); eauto.
  - rewrite Hc. eapply (stored_right L M T F shapes); eauto.
  - rewrite Hc. eapply (covers_right L M T F shapes); eauto.
  - rewrite Hc. eapply (swaps_right L M T F shapes); eauto.
  - apply Mg. now apply inb_In.
  - now apply (rules _ _ table_ok Ch).
Qed.

(** ** Independence: the leaves that the contents of a class do not change with *)
Definition indep (c l : nat) :=
  forall s x, TL s -> typed M (tty T l) x -> D (upd s l x) c = D s c.
Lemma TL_upd s l x : TL s -> typed M (tty T l) x -> TL (upd s l x).
Proof. intros H Tx m. unfold upd. destruct (m =? l) eqn:E; auto. apply Nat.eqb_eq in E. now subst.
  Qed.
Lemma indep_cls t l : mdep T t = [] -> indep t l -> indep (cls t) l.
Proof.
  intros Nil H s x Ts Tx. assert (G: forall s, merged_ok s t) by (intros s' m; rewrite Nil;
    intros []).
  rewrite <- !class_sound by auto using TL_upd. auto.
Qed.
Lemma indep_op t o args l :
  knd t = Some (KOp o args) -> (forall a, In a args -> indep a l) -> indep t l.
Proof.
  intros K H s x Ts Tx. rewrite !(D_op _ _ _ _ K). f_equal. apply map_ext_in.
  intros a Ha. now apply H.
Qed.
Lemma indep_leaf t l : leaf t = true -> t <> l -> indep t l.
Proof. intros Lf N s x _ _. rewrite !D_leaf by auto. now apply upd_other. Qed.
(** Independence of a leaf of itself means that it can hold one thing alone. *)
Lemma indep_deps c l : (forall m, m = l -> indep m l) \/ AL (fun m => negb (m =? l)) c = true ->
  leaf l = true -> indep c l.
Proof.
  intros H Lf s x Ts Tx. destruct H as [H|H].
  - pose proof (H l eq_refl s x Ts Tx) as E. rewrite !D_leaf in E by auto. rewrite upd_same in E.
    assert (Y: forall n t, den M T n (upd s l x) t = den M T n s t).
    { assert (Z: forall t, upd s l x t = s t).
      { intro t. unfold upd. destruct (t =? l) eqn:Q; auto. apply Nat.eqb_eq in Q. now subst. }
      induction n as [|n IH]; simpl; intro t; [apply Z|].
      destruct (knd t) as [[]|]; auto. f_equal. apply map_ext. intro; apply IH. }
    apply Y.
  - eapply AL_agree; eauto. intros m Hm. simpl in Hm. apply upd_other. intro; subst.
    now rewrite Nat.eqb_refl in Hm.
Qed.
End Classes.
