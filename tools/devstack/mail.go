package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/criticizer/criticizer/notify/mail/inbox"
)

// showMail prints the plain text of the mail about the review with the most
// findings.
func showMail(ctx context.Context, stdout io.Writer, inboxURL string, rows []row) error {
	sent := slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return len(r.messageIDs) == 0 || r.messageIDs[0] == "" })
	if len(sent) == 0 {
		return nil
	}
	most := slices.MaxFunc(sent, func(a, b row) int { return a.findings - b.findings })
	var found struct {
		Messages []inbox.Entry `json:"messages"`
	}
	if err := ask(ctx, inboxURL+"/api/lookup?message_id="+url.QueryEscape(most.messageIDs[0]), &found); err != nil {
		return err
	}
	if len(found.Messages) == 0 {
		return fmt.Errorf("the mail about changelist %d was sent as %s, but is not in the inbox", most.Changelist, most.messageIDs[0])
	}
	m := found.Messages[0]
	var opened struct {
		Text string `json:"text"`
	}
	if err := ask(ctx, inboxURL+"/api/messages/"+url.PathEscape(m.ID), &opened); err != nil {
		return err
	}
	text := strings.TrimSpace(strings.ReplaceAll(opened.Text, "\r\n", "\n"))
	_, err := fmt.Fprintf(stdout, "\nTo: %s\nSubject: %s\n\n  %s\n\n", strings.Join(m.To, ", "), m.Subject, strings.ReplaceAll(text, "\n", "\n  "))
	return err
}

// ask decodes an answer of the inbox.
func ask(ctx context.Context, address string, answer any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("read mail: %w", err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("read mail: %s answered %s", address, res.Status)
	}
	return json.NewDecoder(res.Body).Decode(answer)
}
