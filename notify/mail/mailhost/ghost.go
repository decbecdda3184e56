package mailhost

import (
	"io"

	"github.com/emersion/go-smtp"
)

// A ghost is an LMTP server at which every mailbox is gone: what Postfix has
// accepted for one of them comes back as a bounce.
type ghost struct {
	*smtp.Server
	port int
}

func haunt() (*ghost, error) {
	server, port, err := serveLMTP(nobody{})
	return &ghost{server, port}, err
}

type nobody struct{}

func (nobody) NewSession(*smtp.Conn) (smtp.Session, error) { return nobody{}, nil }
func (nobody) Mail(string, *smtp.MailOptions) error        { return nil }
func (nobody) Data(io.Reader) error                        { return nil }
func (nobody) Reset()                                      {}
func (nobody) Logout() error                               { return nil }

func (nobody) Rcpt(string, *smtp.RcptOptions) error {
	return &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "mailbox gone"}
}
