package mail

import (
	"context"
	"net/http"
	"net/url"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/notify/post"
	"github.com/criticizer/criticizer/review"
)

// inboxRecords are the records of the embedded inbox, which answers at a web address.
type inboxRecords struct{ url string }

var inboxService = post.Service{Name: "inbox", Invalid: "check mail.inbox_url"}

func (inboxRecords) name() string { return "inbox" }

// find implements source. An open transaction may be of the message, so it is an error: the
// look-up is repeated.
func (b inboxRecords) find(ctx context.Context, ref messageRef) (state review.EvidenceState, copies int, err error) {
	for _, token := range ref.tokens {
		query := url.Values{"message_id": {messageID(token, ref.domain)}, "from": {ref.sender}, "to": {ref.recipient}}
		var found struct {
			Copies int `json:"copies"`
			// Settled is set if no transaction is open that was open when the request arrived.
			Settled bool `json:"settled"`
		}
		a, err := inboxService.Send(ctx, post.Request{Method: http.MethodGet, URL: b.url + "/api/lookup?" + query.Encode()})
		if err == nil {
			err = inboxService.Decode(a, &found)
		}
		switch {
		case err != nil:
			return review.EvidenceUnknown, 0, err
		case found.Copies > 0:
			return review.EvidenceAccepted, found.Copies, nil
		case !found.Settled:
			return review.EvidenceUnknown, 0, failure.Errorf(failure.UpstreamUnavailable, "look up mail: the inbox is receiving a message")
		}
	}
	return review.EvidenceAbsent, 0, nil
}
