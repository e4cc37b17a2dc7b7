(** Stopped anchors: a version may execute anchors whose step is not proved. The theorems of
    [Pair] and [Entry] are about runs that end at such an anchor. A run that comes to a block behind
    no stopped anchor, and goes on through blocks without one, is such a run. *)
From Coq Require Import List Arith Lia Bool.
Import ListNotations.
From Osier Require Import Util Terms Memory Classes Version Sound Paths.

Section Clean.
Context {C op R V W : Type} (L : Lang C op R) (M : Sem C op V W) (T : table op R).
Variable anch : nat -> bool.
Variable stop : nat -> bool.
Variable v : version op.
(** Claims: blocks that no stopped anchor leads to, and blocks that lead to none. *)
Variables (past ahead : nat -> bool).

Definition nowhere (_ : nat) := false.
Notation live_edges := (live_edges L T v).
Notation reach := (reach L M T anch stop v).
Notation run := (Version.reach L M T anch nowhere v).
Notation start := (start M T v).

Definition quiet (B : blk op) : bool :=
  below (S (bn B)) (fun k => negb (is_anch anch B k && stop (pid B k))).
Definition chk_clean : bool :=
  below (fn v) (fun b => negb (lv v b) ||
    match blk_at v b with
    | None => true
    | Some B =>
      (if past b then quiet B
       else forallb (fun e => negb (past (dst e))) (live_edges (lt B))) &&
      (if ahead b then quiet B && forallb (fun e => ahead (dst e)) (live_edges (lt B)) else true)
    end).

Hypothesis F : Faithful L M.
Hypothesis rules : RulesHold L M T.
Hypothesis table_ok : chk_table L T = true.
Hypothesis version_ok : chk_version L T anch v = true.
Hypothesis clean_ok : chk_clean = true.

Lemma stop_less s s' : step1 L M T anch stop v s = Some s' ->
  step1 L M T anch nowhere v s = Some s'.
Proof.
  unfold step1. destruct (blk_at v (sb s)) as [B|]; [|discriminate].
  destruct (is_anch anch B (sk s) && stop (pid B (sk s))); [discriminate|].
  unfold nowhere. now rewrite andb_false_r.
Qed.
Lemma reach_run s0 s : reach s0 s -> run s0 s.
Proof. induction 1; [constructor|]. econstructor; eauto. now apply stop_less. Qed.
Lemma quiet_step s s' B : Inv L M T v s -> blk_at v (sb s) = Some B -> quiet B = true ->
  step1 L M T anch nowhere v s = Some s' -> step1 L M T anch stop v s = Some s'.
Proof.
  intros I E Q H. destruct (inv_at _ _ _ _ _ I) as [B0 [E0 K0]]. replace B0 with B in
    * by congruence.
  assert (Kl: sk s < S (bn B)) by lia. pose proof (below_ok _ _ Q _ Kl) as N. simpl in N.
  apply negb_true_iff in N. unfold step1 in *. rewrite E in *. rewrite N.
  unfold nowhere in H. now rewrite andb_false_r in H.
Qed.
Lemma clean_at b B : lv v b = true -> blk_at v b = Some B ->
  (past b = true -> quiet B = true) /\
  (past b = false -> forall e, In e (live_edges (lt B)) -> past (dst e) = false) /\
  (ahead b = true -> quiet B = true /\ forall e, In e (live_edges (lt B)) -> ahead (dst e) = true).
Proof.
  intros Lb E. pose proof (below_ok _ _ clean_ok _ (blk_lt _ _ _ E)) as H. simpl in H.
  rewrite Lb, E in H. simpl in H. apply andb_true_iff in H. destruct H as [H1 H2].
  split; [intro Q; now rewrite Q in H1|]. split.
  - intros Q e Ie. rewrite Q, forallb_forall in H1. apply H1 in Ie. now apply negb_true_iff.
  - intro Q. rewrite Q in H2. apply andb_true_iff in H2. destruct H2 as [H2 H3]. split; auto.
    now rewrite forallb_forall in H3.
Qed.
(** A step stays in its block, or takes an edge that may be taken. *)
Lemma step_where s s' B : Inv L M T v s -> blk_at v (sb s) = Some B ->
  step1 L M T anch nowhere v s = Some s' ->
  sb s' = sb s \/ exists e, In e (live_edges (lt B)) /\ sb s' = dst e.
Proof.
  intros I E H. unfold step1 in H. rewrite E in H. unfold nowhere in H. rewrite andb_false_r in H.
  destruct (inst_at B (sk s)) as [[i x o a|i o a r]|] eqn:N.
  - inversion H; subst; auto.
  - destruct (effsem M o (map (se s) a) (sw s)). inversion H; subst; auto.
  - destruct (taken M (lt B) (se s)) as [e|] eqn:Tk; [|discriminate]. right. exists e.
    destruct (inv_at _ _ _ _ _ I) as [B0 [E0 K0]]. replace B0 with B in * by congruence.
    apply inst_none in N. assert (Kl: sk s = bn B) by lia. split.
    + eapply (taken_edge L M T anch v F table_ok); eauto.
    + unfold enter in H. destruct (blk_at v (dst e)); [|discriminate]. inversion H; subst; auto.
Qed.
Section Runs.
Variables (args : list V) (w : W).
Hypothesis args_ok : length args = arity v.
Hypothesis args_ty : args_typed M T args.
Lemma run_inv s : run (start args w) s -> Inv L M T v s.
Proof. exact (version_sound L M T anch nowhere v F rules table_ok version_ok args w s args_ok
  args_ty). Qed.
Lemma past_ok s : run (start args w) s -> past (sb s) = true -> reach (start args w) s.
Proof.
  induction 1 as [|s s' Rn IH St]; intro P; [constructor|].
  pose proof (run_inv _ Rn) as I. destruct (inv_at _ _ _ _ _ I) as [B [E K]].
  destruct (clean_at _ _ (inv_live _ _ _ _ _ I) E) as [Q [U _]].
  assert (Ps: past (sb s) = true).
  { destruct (step_where _ _ _ I E St) as [Q'|[e [Ie Q']]]; [congruence|].
    destruct (past (sb s)) eqn:Z; auto. rewrite Q' in P. now rewrite (U eq_refl e Ie) in P. }
  econstructor; eauto. eapply quiet_step; eauto.
Qed.
Lemma ahead_ok s s' : run (start args w) s -> ahead (sb s) = true -> run s s' ->
  reach s s' /\ forall B, blk_at v (sb s') = Some B -> quiet B = true.
Proof.
  intros Rs A Rn.
  assert (G: reach s s' /\ ahead (sb s') = true /\ run (start args w) s').
  { induction Rn as [|s' s'' Rn [IH [A' R']] St]; [split; [constructor|auto]|].
    pose proof (run_inv _ R') as I. destruct (inv_at _ _ _ _ _ I) as [B [E K]].
    destruct (clean_at _ _ (inv_live _ _ _ _ _ I) E) as [_ [_ U]]. destruct (U A') as [Q Ue].
    split; [econstructor; eauto; eapply quiet_step; eauto|]. split; [|econstructor; eauto].
    destruct (step_where _ _ _ I E St) as [Q'|[e [Ie Q']]]; rewrite Q'; auto. }
  destruct G as [G [A' R']]. split; auto. intros B E.
  destruct (clean_at _ _ (inv_live _ _ _ _ _ (run_inv _ R')) E) as [_ [_ U]]. now apply U.
Qed.
End Runs.

Lemma reach_trans st' a b c : Version.reach L M T anch st' v a b ->
  Version.reach L M T anch st' v b c ->
  Version.reach L M T anch st' v a c.
Proof. intros H G. induction G; auto. econstructor; eauto. Qed.
Lemma reach_first st' a b : Version.reach L M T anch st' v a b -> b = a \/
  exists a', step1 L M T anch st' v a = Some a' /\ Version.reach L M T anch st' v a' b.
Proof.
  induction 1 as [|s s' Rn IH St]; auto. right. destruct IH as [->|[a' [Sa Ra]]].
  - exists s'. split; auto. constructor.
  - exists a'. split; auto. econstructor; eauto.
Qed.
(** Runs are deterministic: one that goes as far as it can passes all states of another. *)
Lemma run_on a b c : run a b -> run a c -> step1 L M T anch nowhere v c = None -> run b c.
Proof.
  intros Rb Rc N. induction Rb as [|s s' Rs IH St]; auto.
  destruct (reach_first _ _ _ IH) as [->|[s1 [S1 R1]]]; [congruence|].
  replace s' with s1 by congruence. auto.
Qed.
End Clean.
