package activities

import (
	"strings"

	"github.com/criticizer/criticizer/review"
)

// CleanTo says who is told about a review without findings.
type CleanTo string

// The choices for reviews without findings.
const (
	CleanToAuthor   CleanTo = "author"
	CleanToEveryone CleanTo = "everyone"
	CleanToNobody   CleanTo = "nobody"
)

// A RecipientPolicy decides who of the people around a change is told.
type RecipientPolicy struct {
	CleanTo CleanTo
	Max     int // recipients per review; the author comes first
}

type choice struct {
	addresses  []string
	unresolved []string // users without a usable address
	skipped    []string // a reason per person left out
}

// choose keeps the order given, author first, and lists everybody once.
func (p RecipientPolicy) choose(known []review.Recipient, outcome review.Outcome) choice {
	var c choice
	seen := map[string]bool{}
	for _, r := range known {
		address := strings.ToLower(r.Address)
		switch {
		case r.Role == review.RoleUnresolved:
			c.unresolved = append(c.unresolved, r.User)
		case seen[address]:
		case outcome == review.OutcomeClean && !p.wantsClean(r.Role):
			c.skipped = append(c.skipped, "no findings")
		case len(c.addresses) >= p.Max:
			c.skipped = append(c.skipped, "over the limit of recipients per review")
		default:
			seen[address] = true
			c.addresses = append(c.addresses, address)
		}
	}
	return c
}

func (p RecipientPolicy) wantsClean(role review.Role) bool {
	switch p.CleanTo {
	case CleanToEveryone:
		return true
	case CleanToNobody:
		return false
	}
	return role == review.RoleAuthor
}
