(** A run of a copy is a stack of activations of the originals ([copy_out]), and a run of an
    original whose calls return is followed by the copy ([copy_in]). *)
From Coq Require Import List Arith Lia Bool.
Import ListNotations.
From Osier Require Import Util Terms Memory Classes Version Sound Paths Pair Entry Clean Live Main.
From Osier Require Import Traps Real Copy CopyStep.

Section Activations.
Context {C op R V W : Type} (L : Lang C op R) (M : Sem C op V W).
Variable halt : op -> list V -> W -> bool.
Variables (callee : op -> option nat) (returns : op -> bool).
Variable I : body op R.
Variable K : copies op R.
Notation ov id := (cver (orig K id)).
Notation ot id := (ctab (orig K id)).
Notation chk_same := (chk_same L K).
Notation chk_way := (chk_way I K).
Notation chk_into := (chk_into callee I K).
Notation chk_back := (chk_back L callee I K).
Notation calm c := (Traps.calm L M (ctab c) halt (canc c) nowhere (cver c)).
Notation stepc c := (step1 L M (ctab c) (canc c) nowhere (cver c)).
Notation startc c := (start M (ctab c) (cver c)).
Notation Invc c := (Inv L M (ctab c) (cver c)).
Notation rel := (rel K).
Notation only := (only K).
Notation Matched := (Matched L M I K).
Notation good_code := (good_code L M).
Notation at_place_ok := (at_place_ok K).
Notation names_ok := (names_ok K).
Notation owns_ok := (owns_ok K).
Notation names := (names K).
Notation owns := (owns K).
Notation rel_map := (rel_map K).
Notation step_c := (step_c L M).
Notation assigned := (assigned K).
Notation assign_only := (assign_only K).
Notation Kind := (Kind L M halt callee returns I K).

Hypothesis F : Faithful L M.
Notation inv_c := (inv_c L M F).
Hypothesis good_I : good_code I.
Hypothesis good_orig : forall id, id < cn K -> good_code (orig K id).
Hypothesis copy_ok : chk_copy L callee returns I K = true.
Notation start_parts := (start_parts L callee returns I K copy_ok).
Notation block_parts := (block_parts L M callee returns I K copy_ok).

Notation kind_of := (kind_of L M halt callee returns I K F good_I good_orig copy_ok).
Hypothesis calls : CallsMean L M halt callee returns K.

(** ** From an original to the copy *)
Lemma calm_transc c a b d : calm c a b -> calm c b d -> calm c a d.
Proof. intros A G. induction G; auto. eapply CS; eauto. Qed.
Variable fair : W -> Prop.
Hypothesis returning : CallsReturn L M halt callee returns K fair.
Theorem copy_in : forall m id s t s', cn K - id <= m -> Matched id s t ->
  calm (orig K id) s s' -> fair (sw s') -> exists t', calm I t t' /\ Matched id s' t' /\
  forall x, fst (owner K x) < id -> se t' x = se t x.
Proof.
  induction m as [|m IHm]; intros id s t s' Lm Mt Cm Fa.
  { pose proof (mt_id Mt). lia. }
  induction Cm as [|s1 s2 Cm IH Ps Sp].
  - exists t. split; [constructor|auto].
  - assert (Fb: fair (sw s1)).
    { unfold step1 in Sp. destruct (blk_at (ov id) (sb s1)) as [B|]; [|discriminate].
      unfold nowhere in Sp. rewrite andb_false_r in Sp.
      destruct (inst_at B (sk s1)) as [[i x o a|i o a r]|].
      - inversion Sp; subst. exact Fa.
      - destruct (effsem M o (map (se s1) a) (sw s1)) as [w' rs] eqn:Es. inversion Sp; subst.
        simpl in Fa. apply (proj1 returning o (map (se s1) a)). now rewrite Es.
      - destruct (taken M (lt B) (se s1)) as [e|]; [|discriminate]. unfold enter in Sp.
        destruct (blk_at (ov id) (dst e)); [|discriminate]. inversion Sp; subst. exact Fa. }
    destruct (IH Fb) as [t1 [Ct [Mt1 Keep]]]. clear IH.
    destruct (kind_of _ _ _ Mt1) as [s' t2 S0 S1 Mt' On Pa _|S0 _ _|B0 i o a r id' t2 Lt Ln Cl E N
      Co
      Len Ta S1 P1 Mt' On|c B0 i o a r rop vs t2 Lt Cl E N Co Rs Rr Ft S1 P1 On Up].
    + rewrite Sp in S0. inversion S0; subst s'. exists t2. split; [|split; auto].
      * eapply CS; eauto. now apply Pa.
      * intros x Hx. rewrite On by lia. auto.
    + congruence.
    + rewrite (step_c _ _ _ E), N in Sp.
      destruct (effsem M o (map (se s1) a) (sw s1)) as [w' rs] eqn:Es.
      assert (Fw: fair w') by (inversion Sp; subst s2; exact Fa).
      assert (Ac: a_call M callee K id' o (map (se s1) a)).
      { repeat split; auto. exists id. split; [apply (mt_id Mt1)|].
        exists (sb s1), (sk s1), B0, i, a, r. auto. }
      destruct (proj2 returning id' o (map (se s1) a) (sw s1) Ac) as [e [rop [vs [Ce [Re
        [Rr Ft]]]]]]; [now rewrite Es|].
      pose proof (calls _ _ _ _ _ _ _ Ac Ce Re Rr Ft) as Em.
      assert (Fe: fair (sw e)) by (rewrite Es in Em; inversion Em; subst; auto).
      destruct (IHm id' (startc (orig K id') (map (se s1) a) (sw s1)) t2 e)
        as [te [Cte [Mte Kte]]]; auto; [lia|].
      destruct (kind_of _ _ _ Mte) as [s' t3 S3 _ _ _ _ _|_ _ En|B3 i3 o3 a3 r3 id3 t3 _ _ _ E3 N3 _
        _ _ _ _ _ _|c B3 i3 o3 a3 r3 rop3 vs3 t3 Lt3 Cl3 E3 N3 Co3 Rs3 Rr3 Ft3 S3 P3 On3
        Up].
      * rewrite (result_stuck L M _ _ _ _ _ _ Re) in S3. discriminate.
      * exfalso. destruct (En _ _ Re) as [_ [Q|Q]]; [lia|congruence].
      * exfalso. destruct Re as [B4 [E4 [N4 _]]]. rewrite E3 in E4. inversion E4; subst B4.
        congruence.
      * rewrite Cl in Cl3, E3, N3. simpl in Cl3, E3, N3. inversion Cl3; subst c.
        replace B3 with B0 in * by congruence. rewrite N in N3. inversion N3; subst i3 o3 a3 r3.
        assert (vs3 = vs).
        { destruct Re as [B4 [E4 [_ [_ [_ Q4]]]]], Rs3 as [B5 [E5 [_ [_ [_ Q5]]]]]. congruence. }
        subst vs3. pose proof Mt1 as [_ _ _ I1 _ R1].
        destruct (Up s1 I1) as [u' [Su Mu]]; auto.
        { intros y A. destruct (R1 y A) as [O Q]. split; auto. rewrite Q.
          rewrite Kte, On; auto; rewrite O; simpl; lia. }
        { now rewrite Cl. }
        assert (u' = s2).
        { rewrite (step_c _ _ _ E), N, Es in Su. simpl in Su, Sp. congruence. }
        subst u'. exists t3. split; [|split; [exact Mu|]].
        { eapply CS; [|exact P3|exact S3]. eapply calm_transc; [|exact Cte]. eapply CS; eauto. }
        intros x Hx. rewrite On3 by lia. rewrite Kte by lia. rewrite On by lia. auto.
    + exfalso. rewrite (result_stuck L M _ _ _ _ _ _ Rs) in Sp. discriminate.
Qed.


(** ** From the copy to activations *)
Variables (args : list V) (w : W).
Hypothesis args_ok : length args = arity (ov 0).
Hypothesis args_ty : args_typed M (ot 0) args.
Hypothesis args_tyI : args_typed M (ctab I) args.

Lemma matched_start : Matched 0 (startc (orig K 0) args w) (startc I args w).
Proof.
  destruct start_parts as [Ln [Bg [B [B0 [E [E0 Ow]]]]]]. destruct (owns_ok _ _ _ Ow) as [Q _].
  pose proof (good_orig _ Ln) as [Rl [Tk Vk]]. pose proof good_I as [RlI [TkI VkI]].
  constructor; simpl; auto.
  - exists 0. auto.
  - now apply (inv_start L M (ot 0) (canc (orig K 0))).
  - apply (inv_start L M (ctab I) (canc I)); auto. unfold arity, params0 in *. rewrite E, Q,
    map_length.
    now rewrite E0 in args_ok.
  - intros y A. unfold start, params0 in *. cbn [sb sk se] in *. rewrite E, E0.
    unfold arity, params0 in args_ok. rewrite E0 in args_ok. apply assigned; auto.
    intro NI. exfalso. destruct (avail_def _ _ _ _ A) as [d [p [Dl [Df [Dm Lk]]]]].
    unfold chk_version, chk_first in Vk. apply andb_true_iff in Vk. destruct Vk as [Vk _].
    apply andb_true_iff in Vk. destruct Vk as [Vk _]. apply andb_true_iff in Vk.
    destruct Vk as [Vk _]. apply andb_true_iff in Vk. destruct Vk as [Vk _].
    apply andb_true_iff in Vk. destruct Vk as [_ Dz]. apply nats_eqb_ok in Dz. rewrite Dz in Dm.
    destruct Dm as [<-|[]]. specialize (Lk eq_refl). assert (p = 0) by lia. subst p.
    unfold isdef in Df. rewrite E0 in Df. apply inb_In in Df. contradiction.
Qed.

(** The activations of a run: the instance and the state of the innermost, and those that wait, the
    innermost of them first. *)
Inductive stack (env : nat -> V) : nat -> st V W -> list (nat * st V W) -> Prop :=
| Outer s : calm (orig K 0) (startc (orig K 0) args w) s -> rel 0 s env -> stack env 0 s []
| Inner id s c u rest B i o a r : stack env c u rest -> c < id -> id < cn K ->
    caller K id = (c, (sb u, sk u)) -> blk_at (ov c) (sb u) = Some B ->
    inst_at B (sk u) = Some (IEff i o a r) -> callee o = Some (fnc K id) ->
    length (map (se u) a) = arity (ov id) -> args_typed M (ot id) (map (se u) a) ->
    calm (orig K id) (startc (orig K id) (map (se u) a) (sw u)) s -> rel id s env ->
    stack env id s ((c, u) :: rest).

Lemma stack_keep env env' id s rest : stack env id s rest ->
  (forall x, fst (owner K x) <= id -> env' x = env x) -> stack env' id s rest.
Proof.
  intro St. induction St as [s Cm Rl|id s c u rest B i o a r St IH Lt Ln Cl E N Co Len Ta Cm Rl];
    intro Eq.
  - constructor; auto. intros y A. destruct (Rl y A) as [O Q]. split; auto. rewrite Q. symmetry.
    apply Eq. now rewrite O.
  - eapply Inner; eauto.
    + apply IH. intros x Hx. apply Eq. lia.
    + intros y A. destruct (Rl y A) as [O Q]. split; auto. rewrite Q. symmetry.
      apply Eq. now rewrite O.
Qed.
Lemma stack_step env env' id s s' rest : stack env id s rest -> passes halt (ov id) s ->
  stepc (orig K id) s = Some s' -> only id env env' -> rel id s' env' -> stack env' id s' rest.
Proof.
  intros St Ps Sp On Rl. inversion St as [s1 Cm Rl1|id1 s1 c u rest1 B i o a r St1 Lt Ln Cl E N Co
    Len Ta Cm Rl1]; subst.
  - constructor; auto. eapply CS; eauto.
  - eapply Inner; eauto; [|eapply CS; eauto]. eapply stack_keep; eauto. intros x Hx. apply On. lia.
Qed.
Lemma stack_inv env id s rest : stack env id s rest -> Invc (orig K id) s.
Proof.
  intro St. assert (Ln: id < cn K).
  { inversion St; subst; auto. now destruct start_parts. }
  destruct (good_orig _ Ln) as [Rl [Tk Vk]].
  inversion St as [s1 Cm Rl1|id1 s1 c u rest1 B i o a r St1 Lt Ln1 Cl E N Co Len Ta Cm Rl1]; subst;
    eapply (calm_inv L M _ halt (canc (orig K _)) nowhere _ F Rl Tk Vk); eauto.
Qed.
Lemma stack_rel env id s rest : stack env id s rest -> rel id s env.
Proof. now destruct 1. Qed.

(** A run of the copy is a stack of activations. *)
Theorem copy_out t : calm I (startc I args w) t -> exists id s rest,
  stack (se t) id s rest /\ Matched id s t.
Proof.
  induction 1 as [|t t' Cm [id [s [rest [Sk Mt]]]] Ps St].
  - exists 0, (startc (orig K 0) args w), []. pose proof matched_start as Mt. split; auto.
    constructor; [constructor|apply Mt].
  - destruct (kind_of _ _ _ Mt) as [s' t2 S0 S1 Mt' On Pa _|_ S1 _|B0 i o a r id' t2 Lt Ln Cl E N Co
      Len Ta S1 _ Mt' On|c B0 i o a r rop vs t2 Lt Cl E N Co Rs Rr Ft S1 _ On Up];
      rewrite St in S1; inversion S1; subst t2; clear S1.
    + exists id, s', rest. split; auto. eapply stack_step; eauto; [now apply Pa|apply Mt'].
    + exists id', (startc (orig K id') (map (se s) a) (sw s)), ((id, s) :: rest). split; auto.
      eapply Inner; eauto; [|constructor|apply Mt']. eapply stack_keep; eauto.
      intros x Hx. apply On. lia.
    + inversion Sk as [s1 Cm1 Rl1|id1 s1 c1 u rest1 B1 i1 o1 a1 r1 St1 Lt1 Ln1 Cl1 E1 N1 Co1 Len1
        Ta1 Cm1 Rl1]; subst; [lia|].
      rewrite Cl1 in Cl, E, N. simpl in Cl, E, N. inversion Cl; subst c.
      replace B1 with B0 in * by congruence. rewrite N in N1. inversion N1; subst i1 o1 a1 r1.
      assert (Ac: a_call M callee K id o (map (se u) a)).
      { repeat split; auto. exists c1. split; [lia|]. exists (sb u), (sk u), B0, i, a, r. auto. }
      pose proof (calls _ _ _ _ _ _ _ Ac Cm1 Rs Rr Ft) as Es.
      destruct (Up u (stack_inv _ _ _ _ St1) (stack_rel _ _ _ _ St1)) as [u' [Su Mt']]; auto.
      { now rewrite Cl1. }
      exists c1, u', rest1. split; auto. eapply stack_step; eauto; [|apply Mt'].
      unfold passes. now rewrite E, N.
Qed.

End Activations.
