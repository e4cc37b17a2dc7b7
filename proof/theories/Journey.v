(** Journeys in which a trap ends the run: any number of hops, and no trap that the version that
    runs would not have met from the start. *)
From Coq Require Import List Arith Lia Bool.
Import ListNotations.
From Osier Require Import Util Terms Memory Classes Version Sound Paths Pair Entry Clean Live Main.
From Osier Require Import Hops Traps Walk Owed Matched Landing Real.

Section Journey.
Context {C op R V W : Type} (L : Lang C op R) (M : Sem C op V W).
Variable H : TrapLang C op.
Variable halt : op -> list V -> W -> bool.
Hypothesis F : Faithful L M.
Hypothesis FT : TrapFaithful H M halt.
Notation cert := (@cert op R).
Notation good := (good L M (can_trap H)).
Notation calm c v := (calm L M (ct c) halt (canch c) nowhere v).
Notation stepv c v := (step1 L M (ct c) (canch c) nowhere v).
Notation startv c v := (start M (ct c) v).

(** The claims about traps are those of the pair and its entry. *)
Definition fires (c : cert) (E : entry op) : Prop := takes L c E /\ exists X here_by far_by,
  chk_traps L (ct c) H (canch c) (cp c) (cq c) (ck c) X = true /\
  chk_passed L (ct c) H (canch c) (cp c) (cq c) (ck c) X E = true /\
  chk_fire L (ct c) H (canch c) (cp c) (cq c) (ck c) E here_by far_by = true.

Lemma same_passes v v' s t : same_code v v' -> Same s t -> passes halt v s -> passes halt v' t.
Proof.
  intros Cd [Hb Hk He Hw Ht]. unfold passes. rewrite Hb, Hk, He, Hw, <- (same_blk v v' _ Cd). auto.
Qed.
Lemma same_calm (c c' : cert) v v' args w s : same_code v v' -> calm c v (startv c v args w) s ->
  exists s', calm c' v' (startv c' v' args w) s' /\ Same s s'.
Proof.
  intros Cd Rn. induction Rn as [|s s1 Rn [s' [R' S']] Ps St].
  - exists (startv c' v' args w). split; [constructor|]. constructor; auto. unfold start. simpl.
    unfold params0. now rewrite (same_blk v v' 0 Cd).
  - destruct (same_step L M c c' v v' s s' s1 Cd S' St) as [s1' [St' S1]]. exists s1'. split; auto.
    eapply CS; eauto. eapply same_passes; eauto.
Qed.

Variables (args : list V) (w : W).
Inductive real_journey : cert -> st V W -> Prop :=
| RStart c : good c -> length args = arity (cq c) -> args_typed M (ct c) args ->
    real_journey c (startv c (cq c) args w)
| RStep c t t' : real_journey c t -> passes halt (cq c) t -> stepv c (cq c) t = Some t' ->
    real_journey c t'
| RHop c c' E t junk ghost : real_journey c t -> good c' -> fires c' E ->
    same_code (cq c) (cp c') -> length args = arity (cp c') -> args_typed M (ct c') args ->
    (sb t, sk t) = src E ->
    for_all (fun x => mem x (carmed c (sb t) (sk t))) (requires E) = true ->
    real_journey c'
      (St (fst (tgt E)) (snd (tgt E)) (fired M E (se t) junk) (sw t) (str t) ghost).

(** At every moment, the version that runs, started by itself on the same input, comes to the same
    place without a trap, in the same world, after the same effects, with the same contents of all
    needed values. *)
Theorem journey_real c t : real_journey c t -> good c /\ length args = arity (cq c) /\
  args_typed M (ct c) args /\
  exists s, calm c (cq c) (startv c (cq c) args w) s /\ Alike (cneed c) s t.
Proof.
  induction 1 as [c G Len Ta|c t t' J [G [Len [Ta [s [Rs Al]]]]] Ps St
    |c c' E t junk ghost J [G [Len [Ta [s [Rs Al]]]]] G' Tk Cod Len' Ta' At Ar].
  - split; auto. split; auto. split; auto. eexists. split; [constructor|]. constructor; auto.
  - split; auto. split; auto. split; auto. pose proof G as [Rl Ok].
    pose proof (chk_pair_ok L (ct c) H (canch c) (cp c) (cq c) (ck c) _ _ _ _ Ok) as Pr.
    pose proof (live_ok L (ct c) H (canch c) (cp c) (cq c) (ck c) _ _ _ _ Ok) as Lv.
    pose proof (table_ok _ _ _ _ _ _ Pr) as Tok. pose proof (okq _ _ _ _ _ _ Pr) as Okq.
    pose proof (calm_inv L M (ct c) halt (canch c) nowhere (cq c) F Rl Tok Okq args w Len Ta s Rs)
      as I.
    destruct (alike_back L M (can_trap H) c s t t' G I Al St) as [s' Ss].
    destruct (alike_step L M (ct c) (canch c) nowhere (cq c) (can_trap H) (cneed c) (carmed c)
      F Tok Okq Lv s t s' I Al Ss) as [t2 [St2 Al2]].
    assert (t2 = t') by congruence. subst t2. exists s'. split; auto. eapply CS; eauto.
    eapply (alike_passes L M (ct c) H halt (canch c) (cp c) (cq c)); eauto.
  - destruct (same_calm c c' (cq c) (cp c') args w s Cod Rs) as [sp [Rp Sm]].
    pose proof G as [Rl Ok]. pose proof G' as [Rl' Ok'].
    destruct Tk as [Tk [X [here_by [far_by [Tr [Cd Cf]]]]]].
    pose proof (chk_pair_ok L (ct c) H (canch c) (cp c) (cq c) (ck c) _ _ _ _ Ok) as Pr.
    pose proof (live_ok L (ct c) H (canch c) (cp c) (cq c) (ck c) _ _ _ _ Ok) as Lv.
    pose proof (table_ok _ _ _ _ _ _ Pr) as Tok. pose proof (okq _ _ _ _ _ _ Pr) as Okq.
    pose proof (calm_inv L M (ct c) halt (canch c) nowhere (cq c) F Rl Tok Okq args w Len Ta s Rs)
      as I.
    assert (Here: (sb sp, sk sp) = src E).
    { rewrite (sm_b _ _ Sm), (sm_k _ _ Sm), <- (al_b _ _ _ Al), <- (al_k _ _ _ Al). exact At. }
    destruct (real_right L M (ct c') H halt (canch c') (cp c') (cq c') (ck c') X (cpast c')
      (cahead c') (cneed c') (carmed c') F Rl' FT Ok' Tr args w Len' Ta' E here_by far_by sp Tk Cf
      Cd Rp Here) as [sq [Rq [Aq [Ew [Et Right]]]]].
    pose proof (chk_pair_ok L (ct c') H (canch c') (cp c') (cq c') (ck c') _ _ _ _ Ok') as Pr'.
    split; auto. split; [eapply args_okq; eauto|]. split; auto. exists sq. split; auto.
    destruct (Right (se t) junk) as [_ [Prov _]].
    { intros x Hx. rewrite (sm_e _ _ Sm). pose proof (for_all_ok _ _ _ Ar Hx) as Hm. simpl in Hm.
      rewrite (al_b _ _ _ Al), (al_k _ _ _ Al) in Hm.
      exact (armed_ok L M (ct c) (cq c) (can_trap H) (cneed c) (carmed c) Lv s t x I Al Hm). }
    constructor; simpl.
    + destruct (tgt E); simpl in *; congruence.
    + destruct (tgt E); simpl in *; congruence.
    + rewrite Ew, (sm_w _ _ Sm). exact (al_w _ _ _ Al).
    + rewrite Et, (sm_t _ _ Sm). exact (al_tr _ _ _ Al).
    + intros x Hx. unfold takes, accept_entry in Tk. apply andb_true_iff in Tk.
      destruct Tk as [_ Cv]. unfold covers in Cv. rewrite <- Aq in Cv. simpl in Cv.
      pose proof (for_all_ok _ _ _ Cv Hx) as Gx. simpl in Gx.
      destruct (get x (assigns E)) as [o|] eqn:Ex; [|discriminate]. exact (Prov x o Ex).
Qed.
End Journey.
Print Assumptions journey_real.
