package main

// checks are mutants of the checks of destinations and of what they cost.
func checks() []mutant {
	const (
		checker    = "shortener/checker.go"
		reputation = "shortener/reputation.go"
		webrisk    = "shortener/webrisk/webrisk.go"
		answer     = "shortener/webrisk/answer.go"
	)
	return []mutant{
		{fault: "a check whose outcome is unknown is free", file: reputation, test: "TestMoneyIsNeverUndercounted",
			from: "case CheckRejected, CheckThrottled", to: "case CheckUnanswered, CheckRejected, CheckThrottled"},
		{fault: "a check that was rejected is charged", file: reputation, test: "TestCheckOutcomes",
			from: "case CheckRejected, CheckThrottled", to: "case CheckThrottled"},
		{fault: "an unpaid check is made all the same", file: checker, test: "TestMoneySpent",
			from: "unpaid(err)\n\t\treturn j\n", to: "unpaid(err)\n"},
		{fault: "a check that a killed process left is given back", file: checker, test: "TestStoreFailsAroundACall",
			from: "quota.Committed,", to: "quota.Released,"},
		{fault: "the money for checks is a matter of the payer", file: checker, test: "TestMoneySpent",
			from: "exceeded.Usage.Level == LevelCheckBudget || ", to: ""},
		{fault: "a store that cannot reserve a check is a matter of the policy", file: checker, test: "TestStoreFailsAroundACall",
			from: "\treturn refusal(err)\n}\n\n// outcomeOf", to: "\treturn fmt.Errorf(\"%w: %w\", ErrUnchecked, err)\n}\n\n// outcomeOf"},
		{fault: "a check ends with the one who began it", file: checker, test: "TestClientLeavesAmid",
			from: "c.call(context.WithoutCancel(ctx)", to: "c.call(ctx"},
		{fault: "one who may ask no more keeps others from a check", file: checker, test: "TestOneAtItsLimitHindersNobody",
			from: "case j.unpaid && j.who != p.who:", to: "case j.who.String() == \"\":"},
		{fault: "a dangerous page condemns its host without a check", file: checker, test: "TestDangerousAtOnce",
			from: "&& j.destination != destination:", to: "&& j.destination == \"\":"},
		{fault: "a check begins when nobody waits any more", file: checker, test: "TestBatchTakesNoLongerThan",
			from: "for ctx.Err() == nil {", to: "for range 1 {"},
		{fault: "a client without links has its destination checked", file: "shortener/create.go", test: "TestRefusedForFree",
			from: "\tif err != nil {\n\t\tremember(err)\n\t\treturn s.unlessDone(ctx, who, d, now, refusal(err))\n\t}\n\tif s.checker", to: "\tif s.checker"},
		{fault: "a slug that is taken costs a check", file: "shortener/create.go", test: "TestTakenSlugCostsNoCall",
			from: "\t\tif err := s.slugsFree(ctx, links); err != nil {", to: "\t\tif err := s.slugsFree(ctx, nil); err != nil {"},
		{fault: "a slug that another try of the same demand took is taken", file: "shortener/create.go", test: "TestTakenByAnotherTry",
			from: "links); err != nil {\n\t\t\treturn s.unlessDone(ctx, who, d, now, err)", to: "links); err != nil {\n\t\t\treturn nil, false, err"},
		{fault: "a list that cannot be paid for is paid for as far as the money goes", file: checker, test: "TestBatchThatCannotBePaid",
			from: "if len(hosts) < 2 {", to: "if len(hosts) < 1_000 {"},
		{fault: "a few networks use up the day's checks", file: reputation, test: "TestNewcomersKeepTheLastCalls",
			from: "return c.DayCalls() / 10", to: "return 0"},
		{fault: "a rejected check keeps others from asking", file: reputation, test: "TestCircuit",
			from: "&& o != CheckDangerous && o != CheckRejected", to: "&& o != CheckDangerous"},
		{fault: "a rejection ends a row of failures", file: "shortener/circuit.go", test: "TestCircuit",
			from: "case outcome != CheckRejected:", to: "default:"},
		{fault: "a demand waits for a check that has failed", file: checker, test: "TestFailedDemandsWaitNoMore",
			from: "defer c.leave(key)", to: ""},
		{fault: "a private destination is sent to a stranger", file: checker, test: "TestPrivateDestinationsAreNotSent",
			from: "seen || isPrivate(destination)", to: "seen"},
		{fault: "the last of the money is kept for networks where all have keys", file: reputation, test: "TestKeysSpendAllOfTheMoney",
			from: "if c.KeysOnly {", to: "if c.KeysOnly && c.Price < 0 {"},
		{fault: "a client that is blocked leads its links elsewhere", file: "shortener/manage.go", test: "TestBlockedClientsChange",
			from: "s.Limits(who.Client).Blocked", to: "before.Deleted"},
		{fault: "a changed destination needs no check", file: "shortener/manage.go", test: "TestChangesAreChecked",
			from: "to != nil && *to != before.Destination", to: "to != nil && *to == before.Destination"},
		{fault: "a check may be sent twice over a kept connection", file: webrisk, test: "TestAskedOnce",
			from: "DisableKeepAlives:      true,", to: ""},
		{fault: "an answer with an error makes a check safe", file: answer, test: "TestOutcomes",
			from: "RejectUnknownMembers(true)", to: "RejectUnknownMembers(false)"},
		{fault: "a threat of an unknown form is a verdict", file: answer, test: "TestOutcomes",
			from: "if len(threat.Types) == 0 {", to: "if threat.Types == nil && threat.ExpireTime != nil {"},
		{fault: "a failed check tells the key", file: webrisk, test: "TestOutcomes",
			from: "cause(ctx, err, errNoHTTP))\n\tcase err != nil:", to: "err)\n\tcase err != nil:"},
		{fault: "an answer that breaks off tells the key", file: webrisk, test: "TestOutcomes",
			from: "cause(ctx, err, errNoHTTP))\n\tcase len(body)", to: "err)\n\tcase len(body)"},
		{fault: "headers have no end", file: webrisk, test: "TestOutcomes",
			from: "MaxResponseHeaderBytes: maxAnswer,", to: ""},
	}
}
