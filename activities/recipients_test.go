package activities

import (
	"slices"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/review"
)

// (notification 6.3)
func TestChooseRecipients(t *testing.T) {
	t.Parallel()
	author := review.Recipient{User: "alice", Address: "Alice@corp.test", Role: review.RoleAuthor}
	bob := review.Recipient{User: "bob", Address: "bob@corp.test", Role: review.RoleSubscriber}
	robot := review.Recipient{User: "build-7", Address: "build@corp.test", Role: review.RoleSubscriber}
	owner := review.Recipient{Address: "lead@corp.test", Role: review.RoleOwner}
	gone := review.Recipient{User: "gone", Role: review.RoleUnresolved}
	everybody := []review.Recipient{author, bob, robot, owner, gone}
	for name, tc := range map[string]struct {
		policy     RecipientPolicy
		known      []review.Recipient
		outcome    review.Outcome
		notified   string
		unresolved string
		skipped    int
	}{
		"everybody": {RecipientPolicy{Max: 10}, everybody, review.OutcomeFindings, "alice bob build lead", "gone", 0},
		"one address in several spellings": {
			RecipientPolicy{Max: 10},
			[]review.Recipient{author, {User: "al", Address: "ALICE@CORP.TEST", Role: review.RoleSubscriber}, {Address: "alice@corp.test", Role: review.RoleOwner}},
			review.OutcomeFindings, "alice", "", 0,
		},
		"no bots":                  {RecipientPolicy{Max: 10, Bots: []string{"Build-*"}}, everybody, review.OutcomeFindings, "alice bob lead", "gone", 1},
		"no bots, by address":      {RecipientPolicy{Max: 10, Bots: []string{"build@*"}}, everybody, review.OutcomeFindings, "alice bob lead", "gone", 1},
		"a bot without an address": {RecipientPolicy{Max: 10, Bots: []string{"gone"}}, everybody, review.OutcomeFindings, "alice bob build lead", "", 1},
		"who opted out by address": {RecipientPolicy{Max: 10, OptOut: []string{"BOB@corp.test"}}, everybody, review.OutcomeFindings, "alice build lead", "gone", 1},
		"who opted out by user":    {RecipientPolicy{Max: 10, OptOut: []string{"Alice"}}, everybody, review.OutcomeFindings, "bob build lead", "gone", 1},
		"the opt-out of a user silences nobody else with their address": {
			RecipientPolicy{Max: 10, OptOut: []string{"bob"}}, []review.Recipient{
				author, {User: "bob", Address: "lead@corp.test", Role: review.RoleSubscriber}, {User: "lead", Address: "Lead@corp.test", Role: review.RoleSubscriber}, owner,
			},
			review.OutcomeFindings, "alice lead", "", 1,
		},
		"an address that bounced": {
			RecipientPolicy{Max: 10, Bounced: []string{"bob@corp.test"}}, []review.Recipient{author, {User: "bob", Address: "Bob@corp.test", Role: review.RoleSubscriber}},
			review.OutcomeFindings, "alice", "bob", 0,
		},
		"a bot with a person's address": {
			RecipientPolicy{Max: 10, Bots: []string{"svc-*"}}, []review.Recipient{{User: "svc-bob", Address: "bob@corp.test", Role: review.RoleAuthor}, bob},
			review.OutcomeFindings, "bob", "", 1,
		},
		"an opt-out is not a pattern":       {RecipientPolicy{Max: 10, OptOut: []string{"*"}}, everybody, review.OutcomeFindings, "alice bob build lead", "gone", 0},
		"an empty entry matches nobody":     {RecipientPolicy{Max: 10, OptOut: []string{""}, Bots: []string{""}}, everybody, review.OutcomeFindings, "alice bob build lead", "gone", 0},
		"the limit spares the first":        {RecipientPolicy{Max: 2}, everybody, review.OutcomeFindings, "alice bob", "gone", 2},
		"the author alone, of clean ones":   {RecipientPolicy{Max: 10, CleanTo: CleanToAuthor}, everybody, review.OutcomeClean, "alice", "gone", 3},
		"everybody, of clean ones":          {RecipientPolicy{Max: 10, CleanTo: CleanToEveryone}, everybody, review.OutcomeClean, "alice bob build lead", "gone", 0},
		"nobody, of clean ones":             {RecipientPolicy{Max: 10, CleanTo: CleanToNobody}, everybody, review.OutcomeClean, "", "gone", 4},
		"all of them, of what is not clean": {RecipientPolicy{Max: 10, CleanTo: CleanToNobody}, everybody, review.OutcomePartial, "alice bob build lead", "gone", 0},
		"an address that is none is reported": {
			RecipientPolicy{Max: 10}, []review.Recipient{author, {User: "eve", Address: "eve@corp.test\r\nBcc: x@corp.test", Role: review.RoleSubscriber}},
			review.OutcomeFindings, "alice", "eve", 0,
		},
		"an address outside of the allowed domains": {
			RecipientPolicy{Max: 10, AllowedDomains: []string{"Corp.test", "example.com"}}, []review.Recipient{
				author, {User: "eve", Address: "eve@evil.test", Role: review.RoleSubscriber}, {User: "sub", Address: "sub@x.corp.test", Role: review.RoleSubscriber},
				{User: "tail", Address: "tail@evilcorp.test", Role: review.RoleSubscriber}, {Address: "owner@corp.test.evil.test", Role: review.RoleOwner},
			},
			review.OutcomeFindings, "alice", "", 0,
		},
		"no one": {RecipientPolicy{Max: 10}, nil, review.OutcomeFindings, "", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := tc.policy.choose(tc.known, tc.outcome)
			var notified []string
			for _, address := range got.addresses {
				notified = append(notified, strings.TrimSuffix(address, "@corp.test"))
			}
			if !slices.Equal(notified, strings.Fields(tc.notified)) || !slices.Equal(got.unresolved, strings.Fields(tc.unresolved)) || len(got.excluded)-len(got.unresolved)-len(got.outside) != tc.skipped {
				t.Errorf("got %+v", got)
			}
		})
	}
}
