package main

// reservations are mutants of reservations, of answers to Idempotency-Keys and of
// batches.
func reservations() []mutant {
	const (
		rules  = "quota/reservation.go"
		kept   = "quota/boltquota/reservation.go"
		period = "quota/boltquota/period.go"
		answer = "shortener/answer.go"
		making = "shortener/create.go"

		memory = "shortener/memstore/memstore.go"
		holds  = "shortener/memstore/reservations.go"

		store  = "shortener/boltstore/boltstore.go"
		stored = "shortener/boltstore/reservations.go"

		inMemory = "./shortener/memstore"
		inFile   = "./shortener/boltstore"
	)
	return []mutant{
		{fault: "what is held is open to others", file: rules, room: inMemory, test: "TestStore/B8_what_is_held_is_nobody_else's",
			from: "return c.Used + c.Held }", to: "return c.Used }"},
		{fault: "what is held stays held", file: rules, test: "TestReservationSums",
			from: "if after[i].Held -= mine.Held; after", to: "if after[i].Held -= 0; after"},
		{fault: "a commit counts what was reserved and not what was paid", file: rules, room: inMemory, test: "TestStore/B12_what_was_not_spent_comes_back",
			from: "after[i].Used += paid", to: "after[i].Used += r.Charges[i].Cost"},
		{fault: "what has cost more than its reservation is not counted", file: rules, room: inMemory, test: "TestStore/B21_a_commit_may_pass_the_maximum",
			from: "paid > math.MaxInt64-after[i].Taken()", to: "paid > min(math.MaxInt64, r.Charges[i].Max)-after[i].Taken()"},
		{fault: "a commit counts twice when it comes twice", file: rules, room: inFile, test: "TestStore/B13_settling_again_changes_nothing",
			from: "\tif r.Settled() {\n\t\treturn r, counts, nil\n\t}\n\tif actual", to: "\tif actual"},
		{fault: "a release comes after a commit", file: rules, room: inFile, test: "TestStore/B13_settling_again_changes_nothing",
			from: "\tif r.Settled() {\n\t\treturn r, counts, nil\n\t}\n\tafter", to: "\tafter"},
		{fault: "a cost that comes after expiry is not counted", file: rules, room: inMemory, test: "TestStore/a_cost_that_comes_after_expiry_is_counted_and_told",
			from: "return r.State != Pending && !r.Expired }", to: "return r.State != Pending }"},
		{fault: "a cost that comes after expiry is not told", file: "shortener/reservation.go", room: inMemory, test: "TestStore/a_cost_that_comes_after_expiry_is_counted_and_told",
			from: "if before.Expired && late > 0 {", to: "if false && late > 0 {"},
		{fault: "a limit that was raised is told as overrun", file: rules, room: inMemory, test: "TestStore/a_limit_that_was_raised_is_not_overrun",
			from: "more && taken > c.Max", to: "(more || true) && taken > c.Max"},
		{fault: "a call whose outcome nobody knows is given back", file: rules, room: inMemory, test: "TestStore/B27d_an_unknown_outcome_is_charged_in_full",
			from: "case r.OnExpiry == Released:", to: "case true:"},
		{fault: "what is settled is forgotten before it can be tried again", file: rules, test: "TestReservationIsKept",
			from: "return until.AddDate(0, 0, 1)", to: "return until"},
		{fault: "a damaged state is taken for a settled one", file: rules, room: "./quota/boltquota", test: "TestDamagedReservations",
			from: "case r.State != Pending && r.State != Committed && r.State != Released:", to: "case false:"},

		{fault: "a retry holds once more", file: kept, room: inFile, test: "TestStore/B19_the_three_rows_of_reserving",
			from: "\tif !errors.Is(err, quota.ErrNoReservation) {\n\t\treturn found", to: "\tif err != nil && !errors.Is(err, quota.ErrNoReservation) {\n\t\treturn found"},
		{fault: "a retry is told that there is no room, beside what it holds itself", file: kept, room: inFile, test: "TestStore/B27a_a_retry_finds_its_reservation",
			from: "\tfound, err := Reservation(tx, r.ID)\n", to: "\tif _, err := Check(tx, r.Charges); err != nil {\n\t\treturn r, false, err\n\t}\n\tfound, err := Reservation(tx, r.ID)\n"},
		{fault: "only the widest level is held", file: kept, room: inFile, test: "TestStore/B27c_one_reservation_holds_several_levels_and_windows",
			from: "write(tx, r.Charges, after)", to: "write(tx, r.Charges[:1], after)"},
		{fault: "what found no room is kept", file: kept, test: "TestReserveRefusedInATransactionThatCommits",
			from: "\tr, after, err := r.Reserve(counts)\n\tif err != nil {\n", to: "\tr, after, err := r.Reserve(counts)\n\tif err != nil {\n\t\tput(tx, r)\n"},
		{fault: "one that cannot be read keeps others from being settled", file: kept, room: inFile, test: "TestDamagedReservation",
			from: "\t\t\twrong = append(wrong, err)\n", to: "\t\t\treturn false, err\n"},
		{fault: "all that has expired is settled in one transaction", file: kept, room: inFile, test: "TestStore/expired_reservations_are_settled_some_at_a_time",
			from: " && done < max(1, limit); {", to: "; {"},
		{fault: "what has not expired is settled", file: kept, room: inFile, test: "TestStore/B27d_an_unknown_outcome_is_charged_in_full",
			from: "end := dueKey(now.Add(time.Microsecond), \"\")", to: "end := dueKey(now.Add(time.Second), \"\")"},
		{fault: "a window that is being swept keeps its reservations pending", file: period, test: "TestSettleWhileSweeping",
			from: "return p == nil || p.Get(sweptName) != nil", to: "return p == nil"},
		{fault: "an overrun is not told", file: stored, room: inFile, test: "TestStore/B22_an_overrun_is_recorded,_told_and_refuses_the_next",
			from: "putReservationNotices(tx, before, settled, counts, at))", to: "putReservationNotices(tx, before, before, counts, at))"},
		{fault: "a share of the money that is reached on expiry is not told", file: stored, room: inFile, test: "TestStore/B23_stuck_reservations_are_settled,_and_thresholds_told_once",
			from: "\t\t\treturn putReservationNotices(tx, r.Unsettled(), r, counts, now)\n", to: "\t\t\treturn nil\n"},
		{fault: "a reservation is compared under one lock and held under another", file: holds, test: "TestStore/an_order_explains_what_reservations_are_told",
			from: "\tr, counts, err := ownReservation(r).Reserve(s.countsOf(r.Charges))\n",
			to:   "\tr, counts, err := ownReservation(r).Reserve(s.countsOf(r.Charges))\n\ts.mu.Unlock()\n\tyield := make(chan int)\n\tgo close(yield)\n\t<-yield\n\ts.mu.Lock()\n"},

		{fault: "a retry makes a second link", file: store, test: "TestStore/one_of_twenty_tries_makes_the_link",
			from: "if err := replayed(tx, c); err != nil {", to: "if err := replayed(tx, c); err != nil && false {"},
		{fault: "a link is stored without its answer", file: store, test: "TestStore/an_answer_is_kept_with_its_links_or_not_at_all",
			from: "if c.Answer != nil {", to: "if c.Answer != nil && c.Day == \"\" {"},
		{fault: "an answer is kept of what was refused", file: store, test: "TestReservationsShareACommit",
			from: "\tif taken != nil {\n", to: "\tif c.Answer != nil {\n\t\tputAnswer(tx, *c.Answer)\n\t}\n\tif taken != nil {\n"},
		{fault: "an answer that cannot be read is none", file: "shortener/boltstore/answers.go", test: "TestDamagedAnswers",
			from: "\treturn a, true, err\n", to: "\treturn a, err == nil, nil\n"},
		{fault: "answers of the day before the newest are swept", file: "shortener/boltstore/sweep.go", test: "TestSweepAnswers",
			from: "sweepAnswers(tx, keep.Label, sweepChunk)", to: "sweepAnswers(tx, newest, sweepChunk)"},
		{fault: "only one of the slugs that are taken is named", file: memory, test: "TestStore/all_slugs_that_are_taken_are_named",
			from: "taken = append(taken, link.Slug)", to: "taken = []shortener.Slug{link.Slug}"},

		{fault: "an answer is given again after a day", file: answer, test: "TestReplayHoldsForADay",
			from: "now.Sub(a.At) < AnswerHolds", to: "now.Sub(a.At) < 2*AnswerHolds"},
		{fault: "an answer ends with its day", file: answer, test: "TestReplayHoldsForADay",
			from: "range []int{1, 0, -1} {", to: "range []int{1, 0} {"},
		{fault: "another demand is told what was made", file: answer, test: "TestKeyReused",
			from: "!hmac.Equal(text[:sha256.Size], r.fingerprint[:])", to: "false"},
		{fault: "an answer can be read without its key", file: answer, test: "TestAnswerOfAnEarlierProgram",
			from: "[]byte(r.key), ref.ID[:]", to: "nil, ref.ID[:]"},
		{fault: "links and batches share their keys", file: answer, test: "TestKeyReused",
			from: "r.scope = \"batch\"", to: "r.scope = \"single\""},
		{fault: "holders of API keys share their Idempotency-Keys with all", file: answer, test: "TestKeyReused",
			from: "uint64(r.holder)", to: "uint64(0)"},
		{fault: "a demand is done when its answer cannot be read", file: answer, test: "TestDamagedAnswer",
			from: "\t\treturn nil, unreadable(err)\n\t}\n\tif len(text)", to: "\t\treturn nil, nil\n\t}\n\tif len(text)"},
		{fault: "a demand is done when nobody can tell whether it was", file: answer, test: "TestFailuresAreNotReplayed",
			from: "\tcase errors.Is(err, ErrNotFound) || err == nil", to: "\tcase err != nil || err == nil"},
		{fault: "two tries around midnight make two links", file: answer, test: "TestOvertakenTries",
			from: "now.Add(-triesApart), now.Add(triesApart)} {", to: "now} {"},
		{fault: "a try is refused when another has taken the last unit for it", file: answer, test: "TestOvertakenTries",
			from: "made, err := s.replay(ctx, who, d, now); made != nil || err != nil {", to: "made, err := s.replay(ctx, who, d, now); err != nil {"},
		{fault: "what was made is judged anew", file: making, test: "TestReplay",
			from: "\tif made != nil || err != nil {\n", to: "\tif err != nil {\n"},

		{fault: "a batch is charged one unit", file: making, test: "TestBatchAtTheEdge",
			from: "day, int64(len(links)))", to: "day, 1)"},
		{fault: "who has no room for a batch is refused a link", file: making, test: "TestBatchAtTheEdge",
			from: " && len(links) == 1 {", to: " {"},
		{fault: "a batch gives one slug to two links", file: making, test: "TestBatchNamesAllThatIsWrong",
			from: "slug != \"\" && chosen[slug] {", to: "slug != \"\" && chosen[\"\"] {"},
		{fault: "a chosen slug is exchanged for another", file: making, test: "TestBatchNamesAllThatIsWrong",
			from: "\t\t\tcase generated[i]:\n", to: "\t\t\tcase generated[i] || true:\n"},
		{fault: "a slug is drawn twice for a batch", file: making, test: "TestGeneratedSlugsAreDrawnAgain",
			from: " && !given[drawn] {", to: " {"},
	}
}
