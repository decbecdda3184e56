package mail

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/criticizer/criticizer/review"
)

// maxResolved bounds the resolved findings that a rerun lists.
const maxResolved = 10

// A rerunView says what has changed since an earlier version of the review.
type rerunView struct {
	Since    string // "version 2", or the shelf
	Summary  string // "1 new, 2 still open"
	Resolved []string
	// ResolvedMore counts the resolved findings that are not listed.
	ResolvedMore string
}

// newRerunView returns nil for a review that is compared with none.
func newRerunView(p *review.Progress) *rerunView {
	if p == nil {
		return nil
	}
	v := &rerunView{
		Since:        since(p),
		Summary:      fmt.Sprintf("%d new, %d still open, %d resolved", p.New, p.StillOpen, len(p.Resolved)),
		ResolvedMore: more(len(p.Resolved)-maxResolved, "finding"),
	}
	if n := len(p.Unchecked); n > 0 {
		v.Summary += fmt.Sprintf("; %d in files not reviewed this time", n)
	}
	for _, f := range p.Resolved[:min(len(p.Resolved), maxResolved)] {
		v.Resolved = append(v.Resolved, line(f.Path, maxPath)+": "+line(f.Title, maxTitle))
	}
	return v
}

// age says whether the earlier version had the finding; empty if there is none.
func age(p *review.Progress, f review.Finding) string {
	switch {
	case p == nil:
		return ""
	case p.IsNew(f):
		return "new since " + since(p)
	}
	return "still open since " + since(p)
}

// since names the earlier version.
func since(p *review.Progress) string {
	if p.OnShelf {
		return "the review of the shelf"
	}
	return fmt.Sprintf("version %d", p.Since)
}

// thread names the messages that r's message answers. The first is one that
// never was, so that mail programs show all versions as one thread also where
// not every recipient got every version. Of a submit that renumbered its shelf they
// are those of the shelf.
func thread(r review.Report, k review.DeliveryKey, domain string) (references, inReplyTo string) {
	k.Changelist = cmp.Or(r.EarlierOf, k.Changelist)
	references = fmt.Sprintf("<%schange-%d@%s>", idPrefix, k.Changelist, domain)
	if r.Earlier == 0 {
		return references, ""
	}
	k.Version = r.Earlier
	inReplyTo = "<" + messageID(k, domain) + ">"
	return strings.Join([]string{references, inReplyTo}, " "), inReplyTo
}
