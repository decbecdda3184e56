package settings

import (
	"net/url"
	"slices"
	"strings"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/notify/mail"
	"github.com/criticizer/criticizer/review"
)

// Mail says how reports are mailed, and to whom.
type Mail struct {
	SMTP       mail.Config                `yaml:",inline"`
	Evidence   mail.EvidenceConfig        `yaml:",inline"`
	Recipients activities.RecipientPolicy `yaml:",inline"`
	// Recipients of changes to a path: each entry is a path with p4 wildcards, mail addresses
	// and groups of p4, such as //depot/db/....sql dba@example.com group:dba. The fetch stage
	// reads it.
	Owners []string `yaml:"owners"`
}

// Check implements the checks of package config.
func (m Mail) Check(p *config.Problems) {
	p.Add(m.SMTP.FeedbackRelay != "" && m.Evidence.Bounces.Server == "", "feedback_relay", "needs the mailbox that answers arrive in", "set mail.bounces")
}

// Links are the links to the code in mails, posts and exported reports.
type Links struct {
	review.Links `yaml:",inline"`
}

// Check implements the checks of package config.
func (l Links) Check(p *config.Problems) {
	for field, t := range map[string][2]string{"change": {l.Change, "{changelist}"}, "file": {l.File, "{path}"}} {
		u, err := url.Parse(strings.NewReplacer("{", "", "}", "").Replace(t[0]))
		bad := err != nil || u.Host == "" || !slices.Contains([]string{"http", "https", "p4"}, u.Scheme) || !strings.Contains(t[0], t[1])
		p.Add(t[0] != "" && bad, field, "is not a link with "+t[1], "write one that begins with https://, http:// or p4://")
	}
}
