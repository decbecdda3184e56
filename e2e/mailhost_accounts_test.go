package e2e

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net/textproto"
	"time"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"
)

// Hold keeps mail to the accounts in Postfix's queue until they are released:
// Dovecot rejects it temporarily, as it cannot write to their maildirs. IMAP
// still reads them.
func (h *mailHost) Hold(accounts ...string) error { return h.setWritable(accounts, "0500") }

// Release ends Hold. Postfix retries within seconds.
func (h *mailHost) Release(accounts ...string) error { return h.setWritable(accounts, "0700") }

func (h *mailHost) setWritable(accounts []string, mode string) error {
	for _, a := range accounts {
		dir := h.path("mail", a)
		err := errors.Join(
			runDetached("install", "-d", "-m", "0700", "-o", "mail", "-g", "mail", dir, dir+"/cur", dir+"/new"),
			runDetached("install", "-d", "-m", mode, "-o", "mail", "-g", "mail", dir+"/tmp"))
		if err != nil {
			return err
		}
	}
	return nil
}

// Headers returns the header of every message in the account's INBOX, read by
// IMAP.
func (h *mailHost) Headers(account string) ([]textproto.MIMEHeader, error) {
	client, err := h.signIn(account)
	if err != nil {
		return nil, err
	}
	defer func() { _ = client.Close() }()
	box, err := client.Select("INBOX", &imap.SelectOptions{ReadOnly: true}).Wait()
	if err != nil || box.NumMessages == 0 {
		return nil, err
	}
	section := &imap.FetchItemBodySection{Specifier: imap.PartSpecifierHeader, Peek: true}
	messages, err := client.Fetch(imap.SeqSet{{Start: 1, Stop: 0}}, &imap.FetchOptions{BodySection: []*imap.FetchItemBodySection{section}}).Collect()
	if err != nil {
		return nil, fmt.Errorf("read mailbox of %s: %w", account, err)
	}
	headers := make([]textproto.MIMEHeader, len(messages))
	for i, m := range messages {
		reader := textproto.NewReader(bufio.NewReader(bytes.NewReader(m.FindBodySection(section))))
		if headers[i], err = reader.ReadMIMEHeader(); err != nil {
			return nil, fmt.Errorf("read mailbox of %s: %w", account, err)
		}
	}
	return headers, nil
}

func (h *mailHost) signIn(account string) (*imapclient.Client, error) {
	client, err := imapclient.DialInsecure(fmt.Sprintf("127.0.0.1:%d", h.IMAPPort), nil)
	if err != nil {
		return nil, fmt.Errorf("read mailbox of %s: %w", account, err)
	}
	if err := client.Login(account, h.Password).Wait(); err != nil {
		_ = client.Close()
		return nil, fmt.Errorf("sign in as %s: %w", account, err)
	}
	return client, nil
}

// Store adds a message to the account's INBOX, as one that was received at that time.
func (h *mailHost) Store(account, message string, at time.Time) error {
	client, err := h.signIn(account)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	add := client.Append("INBOX", int64(len(message)), &imap.AppendOptions{Time: at})
	_, err = add.Write([]byte(message))
	if err = errors.Join(err, add.Close()); err == nil {
		_, err = add.Wait()
	}
	return err
}
