(** Going on: the target version goes on from the fired state as it would from its own. The entry
    provides every value that is needed there, and code that needs no other value cannot tell the
    two states apart. A value that an armed entry requires counts as needed at the point of the
    entry. *)
From Coq Require Import List Arith Lia Bool.
Import ListNotations.
From Osier Require Import Util Terms Memory Classes Version Sound.

Section Live.
Context {C op R V W : Type} (L : Lang C op R) (M : Sem C op V W) (T : table op R).
Variables (anch stop : nat -> bool) (v : version op).
(** The operations whose operands are needed even where the result is not: those that may trap. *)
Variable demands : op -> bool.
(** Claimed: the values needed at each place. Given: the values that armed entries require there. *)
Variables (need armed : nat -> nat -> set).

Notation step1 := (step1 L M T anch stop v).
Notation reach := (reach L M T anch stop v).
Notation Inv := (Inv L M T v).
Notation live_edges := (live_edges L T v).

Definition needs (t : set) (l : list nat) : bool := forallb (fun x => mem x t) l.
(** What is needed behind an instruction is needed before it, but for the results. *)
Definition keeps (t' : set) (results : list nat) (t : set) : bool :=
  for_all (fun x => inb x results || mem x t) t'.
Definition chk_need_inst (b k : nat) (i : inst op) : bool :=
  let t := need b k in let t' := need b (S k) in
  match i with
  | IPure _ x o a => keeps t' [x] t && (negb (mem x t' || demands o) || needs t a)
  | IEff _ _ a r => keeps t' r t && needs t a
  end.
Definition chk_need_edge (t : set) (e : edge) : bool :=
  match blk_at v (dst e) with
  | None => false
  | Some B =>
    let t' := need (dst e) 0 in
    keeps t' (ps B) t &&
    forallb (fun xa : nat * nat => negb (mem (fst xa) t') || mem (snd xa) t) (combine (ps B) (ea e))
  end.
Definition chk_need_last (b : nat) (B : blk op) : bool :=
  let t := need b (bn B) in
  needs t (la (lt B)) && forallb (chk_need_edge t) (live_edges (lt B)).
Definition chk_armed (b k : nat) : bool := for_all (fun x => mem x (need b k)) (armed b k).
Definition chk_live : bool :=
  below (fn v) (fun b => negb (lv v b) ||
    match blk_at v b with
    | None => true
    | Some B =>
      below (bn B) (fun k => match inst_at B k with
                             | Some i => chk_need_inst b k i | None => false end) &&
      below (S (bn B)) (chk_armed b) && chk_need_last b B
    end).

Hypothesis F : Faithful L M.
Hypothesis rules : RulesHold L M T.
Hypothesis table_ok : chk_table L T = true.
Hypothesis version_ok : chk_version L T anch v = true.
Hypothesis live_ok : chk_live = true.

(** A state with other contents of values. *)
Definition with_env (s : st V W) (env : nat -> V) : st V W :=
  St (sb s) (sk s) env (sw s) (str s) (ss s).
(** Two states at one place, in one world, with the same contents of needed values. *)
Record Alike (s t : st V W) : Prop := {
  al_b : sb t = sb s; al_k : sk t = sk s; al_w : sw t = sw s; al_tr : str t = str s;
  al_env : forall x, mem x (need (sb s) (sk s)) = true -> se t x = se s x
}.
Lemma live_at b B : lv v b = true -> blk_at v b = Some B ->
  (forall k i, inst_at B k = Some i -> chk_need_inst b k i = true) /\
  (forall k, k <= bn B -> chk_armed b k = true) /\ chk_need_last b B = true.
Proof.
  intros Lb E. pose proof (below_ok _ _ live_ok _ (blk_lt _ _ _ E)) as H. simpl in H.
  rewrite Lb, E in H. simpl in H. apply andb_true_iff in H. destruct H as [H H3].
  apply andb_true_iff in H. destruct H as [H1 H2]. split; [|split]; auto.
  - intros k i N. pose proof (below_ok _ _ H1 _ (inst_some _ _ _ N)) as G. simpl in G.
    now rewrite N in G.
  - intros k Lk. assert (Q: k < S (bn B)) by lia.
    change ((if chk_armed b (bn B) then below (bn B) (chk_armed b) else false) = true) in H2.
    apply (below_ok (S (bn B)) (chk_armed b) H2 _ Q).
Qed.
Lemma needs_map t l (env env' : nat -> V) : needs t l = true ->
  (forall x, mem x t = true -> env' x = env x) -> map env' l = map env l.
Proof.
  intros N H. apply map_ext_in. intros x Hx. unfold needs in N. rewrite forallb_forall in N. auto.
Qed.
Lemma keeps_ok t' r t x : keeps t' r t = true -> mem x t' = true -> ~ In x r -> mem x t = true.
Proof.
  intros H I N. pose proof (for_all_ok _ _ _ H I) as G. simpl in G. apply orb_true_iff in G.
  destruct G as [G|G]; auto. apply inb_In in G. contradiction.
Qed.
Lemma alike_step s t s' : Inv s -> Alike s t -> step1 s = Some s' ->
  exists t', step1 t = Some t' /\ Alike s' t'.
Proof.
  intros I [Hb Hk Hw Ht He] St. unfold Version.step1 in St |- *. rewrite Hb, Hk.
  destruct (inv_at _ _ _ _ _ I) as [B [E Kb]]. rewrite E in *.
  destruct (is_anch anch B (sk s) && stop (pid B (sk s))); [discriminate|].
  destruct (live_at _ _ (inv_live _ _ _ _ _ I) E) as [LI [_ LL]].
  destruct (inst_at B (sk s)) as [[i x o a|i o a r]|] eqn:N.
  - pose proof (LI _ _ N) as Q. simpl in Q. apply andb_true_iff in Q. destruct Q as [Kp Nd].
    inversion St; subst; clear St. eexists. split; [reflexivity|]. constructor; simpl; auto.
    intros y Hy. unfold upd. destruct (y =? x) eqn:Yx.
    + apply Nat.eqb_eq in Yx. subst y. rewrite Hy in Nd. simpl in Nd. f_equal.
      eapply needs_map; eauto.
    + apply He. eapply keeps_ok; eauto. intros [->|[]]. now rewrite Nat.eqb_refl in Yx.
  - pose proof (LI _ _ N) as Q. simpl in Q. apply andb_true_iff in Q. destruct Q as [Kp Nd].
    rewrite (needs_map _ _ _ _ Nd He), Hw, Ht.
    destruct (effsem M o (map (se s) a) (sw s)) as [w' rs]. inversion St; subst; clear St.
    eexists. split; [reflexivity|]. constructor; simpl; auto. intros y Hy. unfold assign.
    destruct (find _ _) as [[z c]|] eqn:Fd; auto. apply He. eapply keeps_ok; eauto. intro Iy.
    assert (G: length (pad L M o (length r) rs) = length r)
      by (unfold pad; now rewrite map_length, seq_length).
    destruct (in_combine r (pad L M o (length r) rs) y G Iy) as [c Hc].
    apply (find_none _ _ Fd) in Hc. simpl in Hc. now rewrite Nat.eqb_refl in Hc.
  - unfold chk_need_last in LL. apply andb_true_iff in LL. destruct LL as [Nd Ed].
    apply inst_none in N. assert (Kl: sk s = bn B) by lia. rewrite Kl in *.
    assert (Tk': taken M (lt B) (se t) = taken M (lt B) (se s)).
    { unfold taken. now rewrite (needs_map _ _ _ _ Nd He). }
    rewrite Tk'. destruct (taken M (lt B) (se s)) as [e|] eqn:Tk; [|discriminate].
    destruct (taken_edge L M T anch v F table_ok version_ok s B e I E Kl Tk) as [Le CE].
    rewrite forallb_forall in Ed. apply Ed in Le. unfold chk_need_edge in Le.
    unfold enter in *. destruct (blk_at v (dst e)) as [B'|] eqn:EB'; [|discriminate].
    apply andb_true_iff in Le. destruct Le as [Kp Ar]. rewrite forallb_forall in Ar.
    inversion St; subst; clear St. eexists. split; [reflexivity|]. constructor; simpl; auto.
    intros y Hy. unfold assign. rewrite !(find_combine (fun z => z =? y)).
    destruct (find (fun z : nat * nat => fst z =? y) (combine (ps B') (ea e))) as [[z c]|] eqn:Fd;
      simpl.
    + apply He. apply find_some in Fd. destruct Fd as [Ic Q]. simpl in Q. apply Nat.eqb_eq in Q.
      subst z. apply Ar in Ic. simpl in Ic. now rewrite Hy in Ic.
    + apply He. eapply keeps_ok; eauto. intro Iy. exfalso.
      destruct (edge_ok _ _ _ _ _ _ CE) as [B2 [E2 [_ [_ [Ln _]]]]]. assert (B2 = B') by congruence.
      subst B2. destruct (in_combine (ps B') (ea e) y Ln Iy) as [c Hc].
      apply (find_none _ _ Fd) in Hc. simpl in Hc. now rewrite Nat.eqb_refl in Hc.
Qed.

(** The run from the fired state does what the run of the version does. At each point on the way,
    needed values have the contents that they have there. *)
Theorem going_on s t s' : (forall x, reach s x -> Inv x) -> Alike s t -> reach s s' ->
  exists t', reach t t' /\ Alike s' t'.
Proof.
  intros AI Al Rc. induction Rc as [|s1 s2 Rc [t1 [Rt Al1]] St]; [exists t; split; auto;
    constructor|].
  destruct (alike_step _ _ _ (AI _ Rc) Al1 St) as [t2 [St2 Al2]]. exists t2. split; auto.
  econstructor; eauto.
Qed.
(** An entry that is armed at a point on the way finds the values that it requires. *)
Lemma armed_ok s t x : Inv s -> Alike s t -> mem x (armed (sb s) (sk s)) = true -> se t x = se s x.
Proof.
  intros I Al A. destruct (inv_at _ _ _ _ _ I) as [B [E Kb]].
  destruct (live_at _ _ (inv_live _ _ _ _ _ I) E) as [_ [Ar _]]. specialize (Ar _ Kb).
  apply (al_env _ _ Al). exact (for_all_ok _ _ _ Ar A).
Qed.
End Live.
