(** Hops: any number of transitions, by entries of any accepted certificates.

    A journey starts a version, executes it, and fires armed entries on the way. After each hop, the
    code that runs is another version, in a state that lacks the values that nobody needs. The
    theorem says that at every moment the version that runs, started by itself on the same input,
    comes to the same place in the same world after the same effects, and with the same contents of
    all needed values. *)
From Coq Require Import List Arith Lia Bool.
Import ListNotations.
From Osier Require Import Util Terms Memory Classes Version Sound Paths Pair Entry Clean Live Main.

Section Hops.
Context {C op R V W : Type} (L : Lang C op R) (M : Sem C op V W).
Hypothesis F : Faithful L M.
Variable demands : op -> bool.

(** A certificate with its claims, from one version to another. *)
Record cert := Cert {
  ct : table op R; canch : nat -> bool; cp : version op; cq : version op; ck : claims;
  cpast : nat -> bool; cahead : nat -> bool; cneed : nat -> nat -> set; carmed : nat -> nat -> set
}.
Definition good (c : cert) : Prop := RulesHold L M (ct c) /\
  accept_pair L (ct c) (canch c) (cp c) (cq c) (ck c) demands (cpast c) (cahead c) (cneed c)
    (carmed c) = true.
Definition takes (c : cert) (E : entry op) : Prop :=
  accept_entry L (ct c) (canch c) (cp c) (cq c) (ck c) (cpast c) (cahead c) (cneed c) E = true.

Notation stepv c v := (step1 L M (ct c) (canch c) nowhere v).
Notation runv c v := (run L M (ct c) (canch c) v).
Notation startv c v := (start M (ct c) v).

(** Two certificates may be about one version: the code is the same, the claims differ. *)
Definition same_code (v v' : version op) : Prop := fn v = fn v' /\ forall b, fb v b = fb v' b.
(** States that differ in the contents of leaves alone, which no machine has. *)
Record Same (s t : st V W) : Prop := {
  sm_b : sb t = sb s; sm_k : sk t = sk s; sm_e : se t = se s; sm_w : sw t = sw s;
    sm_t : str t = str s
}.
Lemma same_blk v v' b : same_code v v' -> blk_at v b = blk_at v' b.
Proof. intros [H1 H2]. unfold blk_at. now rewrite H1, H2. Qed.
Lemma same_step c c' v v' s t s' : same_code v v' -> Same s t -> stepv c v s = Some s' ->
  exists t', stepv c' v' t = Some t' /\ Same s' t'.
Proof.
  intros Cd [Hb Hk He Hw Ht] St. unfold step1 in *. rewrite Hb, Hk, <- (same_blk v v' (sb s) Cd).
  destruct (blk_at v (sb s)) as [B|]; [|discriminate]. unfold nowhere in *.
  rewrite andb_false_r in St |- *. destruct (inst_at B (sk s)) as [[i x o a|i o a r]|].
  - inversion St; subst; clear St. eexists. split; [reflexivity|].
    constructor; simpl; congruence.
  - rewrite He, Hw. destruct (effsem M o (map (se s) a) (sw s)) as [w' rs]. inversion St; subst;
    clear St.
    eexists. split; [reflexivity|]. constructor; simpl; congruence.
  - rewrite He. destruct (taken M (lt B) (se s)) as [e|]; [|discriminate]. unfold enter in *.
    rewrite <- (same_blk v v' (dst e) Cd). destruct (blk_at v (dst e)) as [B'|]; [|discriminate].
    inversion St; subst; clear St. eexists. split; [reflexivity|].
    constructor; simpl; rewrite ?He; congruence.
Qed.
Lemma same_run c c' v v' args w s : same_code v v' -> runv c v (startv c v args w) s ->
  exists s', runv c' v' (startv c' v' args w) s' /\ Same s s'.
Proof.
  intros Cd Rn. induction Rn as [|s s1 Rn [s' [R' S']] St].
  - exists (startv c' v' args w). split; [constructor|]. constructor; auto. unfold start. simpl.
    unfold params0. now rewrite (same_blk v v' 0 Cd).
  - destruct (same_step c c' v v' s s' s1 Cd S' St) as [s1' [St' S1]]. exists s1'. split; auto.
    econstructor; eauto.
Qed.

Variables (args : list V) (w : W).
Inductive journey : cert -> st V W -> Prop :=
| JStart c : good c -> length args = arity (cq c) -> args_typed M (ct c) args ->
    journey c (startv c (cq c) args w)
| JStep c t t' : journey c t -> stepv c (cq c) t = Some t' -> journey c t'
| JHop c c' E t junk ghost : journey c t -> good c' -> takes c' E -> same_code (cq c) (cp c') ->
    length args = arity (cp c') -> args_typed M (ct c') args ->
    (sb t, sk t) = src E ->
    (* The entry is armed at this point: the values that it requires count as needed. *)
    for_all (fun x => mem x (carmed c (sb t) (sk t))) (requires E) = true ->
    journey c' (St (fst (tgt E)) (snd (tgt E)) (fired M E (se t) junk) (sw t) (str t) ghost).

Lemma alike_back c s t t' : good c -> Inv L M (ct c) (cq c) s -> Alike (cneed c) s t ->
  stepv c (cq c) t = Some t' -> exists s', stepv c (cq c) s = Some s'.
Proof.
  intros [Rl Ok] I [Hb Hk Hw Ht He] St. unfold accept_pair in Ok. apply andb_true_iff in Ok.
  destruct Ok as [_ Lv]. unfold step1 in *. rewrite Hb, Hk in St.
  destruct (inv_at _ _ _ _ _ I) as [B [E Kb]]. rewrite E in *. unfold nowhere in *.
  rewrite andb_false_r in St |- *. destruct (inst_at B (sk s)) as [[i x o a|i o a r]|] eqn:N.
  - eauto.
  - destruct (effsem M o (map (se s) a) (sw s)). eauto.
  - destruct (live_at L (ct c) (cq c) demands (cneed c) (carmed c) Lv _ _ (inv_live _ _ _ _ _ I) E)
      as [_ [_ LL]].
    unfold chk_need_last in LL. apply andb_true_iff in LL. destruct LL as [Nd _].
    apply inst_none in N. assert (Kl: sk s = bn B) by lia. rewrite Kl in *.
    assert (Tk: taken M (lt B) (se t) = taken M (lt B) (se s)).
    { unfold taken. now rewrite (needs_map _ _ _ _ Nd He). }
    rewrite Tk in St. destruct (taken M (lt B) (se s)) as [e|]; [|discriminate].
    unfold enter in *. destruct (blk_at (cq c) (dst e)); [eauto|discriminate].
Qed.

Theorem hops_right c t : journey c t -> good c /\ length args = arity (cq c) /\
  args_typed M (ct c) args /\
  exists s, runv c (cq c) (startv c (cq c) args w) s /\ Alike (cneed c) s t.
Proof.
  induction 1 as [c G Len Ta|c t t' J [G [Len [Ta [s [Rs Al]]]]] St
    |c c' E t junk ghost J [G [Len [Ta [s [Rs Al]]]]] G' Tk Cd Len' Ta' At Ar].
  - split; auto. split; auto. split; auto. eexists. split; [constructor|]. constructor; auto.
  - split; auto. split; auto. split; auto. pose proof G as [Rl Ok].
    assert (Ok': accept_pair L (ct c) (canch c) (cp c) (cq c) (ck c) demands (cpast c) (cahead c)
      (cneed c) (carmed c) = true) by exact Ok.
    unfold accept_pair in Ok. apply andb_true_iff in Ok. destruct Ok as [Ok Lv].
    apply andb_true_iff in Ok. destruct Ok as [Pr _].
    pose proof (table_ok _ _ _ _ _ _ Pr) as Tok. pose proof (okq _ _ _ _ _ _ Pr) as Okq.
    assert (I: Inv L M (ct c) (cq c) s)
      by exact (version_sound L M (ct c) (canch c) nowhere (cq c) F Rl Tok Okq args w s Len Ta Rs).
    destruct (alike_back c s t t' G I Al St) as [s' Ss].
    destruct (alike_step L M (ct c) (canch c) nowhere (cq c) demands (cneed c) (carmed c)
      F Tok Okq Lv
      s t s' I Al Ss) as [t2 [St2 Al2]].
    assert (t2 = t') by congruence. subst t2. exists s'. split; auto. econstructor; eauto.
  - destruct (same_run c c' (cq c) (cp c') args w s Cd Rs) as [sp [Rp Sm]].
    pose proof G as [_ Ok]. unfold accept_pair in Ok. apply andb_true_iff in Ok.
      destruct Ok as [Ok Lv].
    apply andb_true_iff in Ok. destruct Ok as [Pr _].
    pose proof (table_ok _ _ _ _ _ _ Pr) as Tok. pose proof (okq _ _ _ _ _ _ Pr) as Okq.
    assert (I: Inv L M (ct c) (cq c) s)
      by exact (version_sound L M (ct c) (canch c) nowhere (cq c) F (proj1 G)
        Tok Okq args w s Len Ta Rs).
    pose proof G' as [Rl' Ok']. unfold takes in Tk.
    assert (Here: (sb sp, sk sp) = src E).
    { rewrite (sm_b _ _ Sm), (sm_k _ _ Sm), <- (al_b _ _ _ Al), <- (al_k _ _ _ Al). exact At. }
    destruct (transition_right L M (ct c') (canch c') (cp c') (cq c') (ck c') demands (cpast c')
      (cahead c')
      (cneed c') (carmed c') E args w sp F Rl' Ok' Tk Len' Ta' Rp Here)
      as [sq [Rq [Aq [Ew [Et Right]]]]].
    assert (Lenq: length args = arity (cq c')).
    { unfold accept_pair in Ok'. apply andb_true_iff in Ok'. destruct Ok' as [Ok' _].
      apply andb_true_iff in Ok'. destruct Ok' as [Pr' _]. eapply args_okq; eauto. }
    split; auto. split; auto. split; auto. exists sq. split; auto.
    destruct (Right (se t) junk) as [Prov _].
    { intros x Hx. rewrite (sm_e _ _ Sm). pose proof (for_all_ok _ _ _ Ar Hx) as Hm. simpl in Hm.
      rewrite (al_b _ _ _ Al), (al_k _ _ _ Al) in Hm.
      exact (armed_ok L M (ct c) (cq c) demands (cneed c) (carmed c) Lv s t x I Al Hm). }
    constructor; simpl.
    + destruct (tgt E); simpl in *; congruence.
    + destruct (tgt E); simpl in *; congruence.
    + rewrite Ew, (sm_w _ _ Sm). exact (al_w _ _ _ Al).
    + rewrite Et, (sm_t _ _ Sm). exact (al_tr _ _ _ Al).
    + intros x Hx. unfold accept_entry in Tk. apply andb_true_iff in Tk. destruct Tk as [_ Cv].
      unfold covers in Cv. rewrite <- Aq in Cv. simpl in Cv. pose proof (for_all_ok _ _ _ Cv Hx)
        as Gx.
      simpl in Gx. destruct (get x (assigns E)) as [o|] eqn:Ex; [|discriminate].
      exact (Prov x o Ex).
Qed.
End Hops.
Print Assumptions hops_right.
