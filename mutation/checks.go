package main

// checks are mutants of the checks of destinations and of what they cost.
func checks() []mutant {
	const (
		checker    = "shortener/checker.go"
		reputation = "shortener/reputation.go"
		webrisk    = "shortener/webrisk/webrisk.go"
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
			from: "\tif err != nil {\n\t\tremember(err)\n\t\treturn s.unlessDone(ctx, who, d, now, refusal(err))\n\t}\n\t// Behind", to: "\t// Behind"},
		{fault: "a few networks use up the day's checks", file: reputation, test: "TestNewcomersKeepTheLastCalls",
			from: "return c.DayCalls() / 10 }", to: "return 0 }"},
		{fault: "a rejected check keeps others from asking", file: reputation, test: "TestCircuit",
			from: "&& o != CheckDangerous && o != CheckRejected", to: "&& o != CheckDangerous"},
		{fault: "a changed destination needs no check", file: "shortener/manage.go", test: "TestChangesAreChecked",
			from: "to != nil && *to != before.Destination", to: "to != nil && *to == before.Destination"},
		{fault: "a check may be sent twice over a kept connection", file: webrisk, test: "TestAskedOnce",
			from: "DisableKeepAlives:      true,", to: ""},
		{fault: "a check follows redirects", file: webrisk, test: "TestAskedOnce",
			from: "return http.ErrUseLastResponse", to: "return nil"},
		{fault: "an answer with an error makes a check safe", file: webrisk, test: "TestOutcomes",
			from: "case !found || len(answer) > 1:", to: "case !found:"},
		{fault: "a failed check tells the key", file: webrisk, test: "TestOutcomes",
			from: "\t\t\terr = inner.Err\n", to: "\t\t\t_ = inner\n"},
	}
}
