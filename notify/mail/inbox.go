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

var inboxService = post.Service{Name: "inbox", Invalid: "check mail.journal.server"}

func (inboxRecords) name() string { return "inbox" }

// find implements source. An open transaction may be of the message, so it is an error: the
// look-up is repeated.
func (b inboxRecords) find(ctx context.Context, ref messageRef) (found finding, err error) {
	for _, token := range ref.tokens {
		query := url.Values{"message_id": {messageID(token, ref.domain)}, "from": {ref.sender}, "to": {ref.recipient}}
		var answer struct {
			Copies int `json:"copies"`
			// Settled is set if no transaction is open that was open when the request arrived.
			Settled bool `json:"settled"`
		}
		a, err := inboxService.Send(ctx, post.Request{Method: http.MethodGet, URL: b.url + "/api/lookup?" + query.Encode()})
		if err == nil {
			err = inboxService.Decode(a, &answer)
		}
		switch {
		case err != nil:
			return unknownState, err
		case answer.Copies > 0:
			return finding{state: review.EvidenceAccepted, copies: answer.Copies}, nil
		case !answer.Settled:
			return unknownState, failure.Errorf(failure.UpstreamUnavailable, "look up mail: the inbox is receiving a message")
		}
	}
	return finding{state: review.EvidenceAbsent}, nil
}
