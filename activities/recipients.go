package activities

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// CleanTo is who is notified of a review without findings.
type CleanTo string

// The choices for reviews without findings.
const (
	CleanToAuthor   CleanTo = "author"
	CleanToEveryone CleanTo = "everyone"
	CleanToNobody   CleanTo = "nobody"
)

// A RecipientPolicy decides which of the people around a change are notified.
type RecipientPolicy struct {
	// Who gets a mail without findings: author, everyone or nobody.
	CleanTo CleanTo `yaml:"clean_to" default:"author" oneof:"author everyone nobody"`
	// Max is the number of recipients of a review; the author comes first.
	Max int
	// Whether a reply of other recipients goes to the author of the change.
	ReplyToAuthor bool `yaml:"reply_to_author" default:"true"`
	// Mail addresses or p4 users that are never notified.
	OptOut []string `yaml:"opt_out"`
	// Bots: p4 users or mail addresses, in which * matches any text, such as
	// build-*. Their changes have a lower priority. The fetch stage reads it.
	Bots []string `yaml:"bots"`
	// How long a review may wait for an operator, after a failure before stage notify,
	// until its author gets a mail that the change is not reviewed. 0: never.
	NotReviewedAfter time.Duration `yaml:"not_reviewed_after" default:"4h" check:"not-negative"`
	// Bounced are addresses that a mail server has refused.
	Bounced []string
	// Domains of the addresses that are notified, such as example.com; a subdomain
	// needs its own entry. Empty: all.
	AllowedDomains []string `yaml:"allowed_domains"`
}

// MaxRecipients is the number of recipients of a review in the product.
const MaxRecipients = 50

// Check implements the checks of package config.
func (p RecipientPolicy) Check(problems *config.Problems) {
	for _, bot := range p.Bots {
		_, err := path.Match(bot, "")
		problems.Add(err != nil, "bots", fmt.Sprintf("%q is not a pattern", bot), "write a user or address, with * for any text")
	}
	for _, domain := range p.AllowedDomains {
		problems.Add(strings.ContainsAny(domain, "@*/ ") || !strings.Contains(domain, "."), "allowed_domains", fmt.Sprintf("%q is not a domain", domain), "write one such as example.com, without @ and wildcards")
	}
}

const findingsOnly = "gets findings only (mail.clean_to)"

// The reasons that are shown to the other recipients.
const (
	noAddress = "has no usable address"
	outside   = "has an address outside of mail.allowed_domains"
	bounced   = "has an address that bounced, until an operator resends that delivery"
)

// Decide keeps the order given, author first. A person with several spellings of an
// address is listed once. Who is notified has the plain address, others have theirs as known.
func (p RecipientPolicy) Decide(known []review.Recipient, outcome review.Outcome) (decided []review.RecipientDecision) {
	seen := map[string]bool{}
	for _, r := range known {
		address, err := review.ParseAddress(r.Address)
		why := ""
		switch {
		case matches(p.OptOut, r, strings.EqualFold):
			why = "opted out (mail.opt_out)"
		case matches(p.Bots, r, matchesPattern):
			why = "is a bot (mail.bots)"
		case r.Role == review.RoleUnresolved || err != nil:
			why = noAddress
		case !p.allows(address):
			why = outside
		case slices.Contains(p.Bounced, strings.ToLower(address)):
			why = bounced
		case seen[address]:
			continue
		case outcome == review.OutcomeClean && p.CleanTo != CleanToEveryone && (p.CleanTo == CleanToNobody || r.Role != review.RoleAuthor):
			why = findingsOnly
		case len(seen) >= p.Max:
			why = "is over the limit of recipients per review"
		default:
			seen[address] = true
			r.Address = address
		}
		decided = append(decided, review.RecipientDecision{Recipient: r, Why: why})
	}
	return decided
}

func (p RecipientPolicy) allows(address string) bool {
	domain := address[strings.LastIndexByte(address, '@')+1:]
	same := func(allowed string) bool { return strings.EqualFold(strings.TrimSpace(allowed), domain) }
	return len(p.AllowedDomains) == 0 || slices.ContainsFunc(p.AllowedDomains, same)
}

// A choice is the decisions about a review, by result.
type choice struct {
	addresses  []string
	unresolved []string // users without a usable address
	outside    []string // users with an address outside of the allowed domains
	excluded   []review.RecipientDecision
	quiet      bool // there is no new finding to report
	// roles are by address, also of people who are not notified: an operator may notify them.
	roles map[string]review.Role
}

// maxReasons bounds the people who are named in an error.
const maxReasons = 20

// nobody returns the error for findings that no recipient can get. It names users, because
// errors hold no addresses.
func (c choice) nobody(report review.Report) error {
	var why []string
	for _, e := range c.excluded {
		why = append(why, person(e.User)+" "+e.Why)
	}
	if len(why) == 0 {
		why = []string{"no author, subscriber or owner is known"}
	}
	if more := len(why) - maxReasons; more > 0 {
		why = append(why[:maxReasons], fmt.Sprintf("%d more people", more))
	}
	return failure.Errorf(failure.RecipientRejected, "changelist %d has %d findings and nobody to notify: %s",
		report.Changelist, len(report.Findings), strings.Join(why, "; "))
}

// person names a user without what would make the name an address.
func person(user string) string {
	name, _, _ := strings.Cut(user, "@")
	return cmp.Or(name, "an owner")
}

func (p RecipientPolicy) choose(known []review.Recipient, outcome review.Outcome) choice {
	c := choice{roles: map[string]review.Role{}}
	for _, r := range known {
		if address, err := review.ParseAddress(r.Address); err == nil && (c.roles[address] == "" || r.Role == review.RoleAuthor) {
			c.roles[address] = r.Role
		}
	}
	for _, d := range p.Decide(known, outcome) {
		switch d.Why {
		case "":
			c.addresses = append(c.addresses, d.Address)
			continue
		case noAddress, bounced:
			c.unresolved = append(c.unresolved, cmp.Or(d.User, "an owner"))
		case outside:
			c.outside = append(c.outside, cmp.Or(d.User, "an owner"))
		}
		c.excluded = append(c.excluded, d)
	}
	return c
}

// addressesOf returns the addresses of people in lower case.
func addressesOf(known []review.Recipient) []string {
	var addresses []string
	for _, r := range known {
		if address, err := review.ParseAddress(r.Address); err == nil {
			addresses = append(addresses, strings.ToLower(address))
		}
	}
	return addresses
}

// matches reports whether an entry is the user or the address of r.
func matches(entries []string, r review.Recipient, same func(entry, name string) bool) bool {
	return slices.ContainsFunc(entries, func(entry string) bool {
		entry = strings.TrimSpace(entry)
		return r.User != "" && same(entry, r.User) || r.Address != "" && same(entry, r.Address)
	})
}

// matchesPattern ignores an invalid pattern: the configuration is validated when it is
// loaded.
func matchesPattern(pattern, name string) bool {
	ok, err := path.Match(strings.ToLower(pattern), strings.ToLower(name))
	return ok && err == nil
}
