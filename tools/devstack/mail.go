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
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store"
)

// showMail prints the plain text of a mail about the review with the most findings.
func (e *environment) showMail(ctx context.Context, db *store.DB, stdout io.Writer, found []store.RecentReview) error {
	if len(found) == 0 {
		return nil
	}
	most := slices.MaxFunc(found, func(a, b store.RecentReview) int { return a.Findings - b.Findings })
	deliveries, err := db.FindDeliveries(ctx, store.DeliveryFilter{Changelist: most.Changelist, Status: review.DeliverySent, Limit: 1})
	if err != nil || len(deliveries) == 0 {
		return err
	}
	return printMail(ctx, stdout, e.settings.inboxURL, deliveries[0].NotificationID)
}

// printMail prints the mail of the inbox with a Message-ID.
func printMail(ctx context.Context, stdout io.Writer, inboxURL, messageID string) error {
	var found struct {
		Messages []inbox.Entry `json:"messages"`
	}
	if err := ask(ctx, inboxURL+"/api/lookup?message_id="+url.QueryEscape(messageID), &found); err != nil {
		return err
	}
	if len(found.Messages) == 0 {
		return fmt.Errorf("the mail %s was sent, but is not in the inbox", messageID)
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
