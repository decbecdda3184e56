package config

import "fmt"

// checkProvider reports what the provider lacks to send.
func (m Mail) checkProvider(p *problems) {
	switch m.Provider {
	case "resend":
		p.url("mail.resend_url", m.ResendURL)
		p.requireSecret("CRITICIZER_RESEND_API_KEY", m.ResendAPIKey, "the key of the account at Resend")
		return
	case "inbox":
		p.url("mail.inbox_url", m.InboxURL)
	}
	p.require("mail.host", m.Host, "name the mail server")
	p.oneOf("mail.tls", m.TLS, "mandatory", "implicit", "none")
	p.add(m.Port < 1 || m.Port > 65535, "mail.port", fmt.Sprintf("%d is no port", m.Port), "write 1 to 65535")
	p.add(m.TLS == "none" && !loopback(m.Host), "mail.tls", "is none for a server on another host", "set it to mandatory or implicit")
	if m.Username != "" && m.TokenFile == "" {
		p.requireSecret("CRITICIZER_SMTP_PASSWORD", m.Password, "the password of mail.username")
	}
	p.add(m.PasswordOld.IsSet() && !m.Password.IsSet(), "CRITICIZER_SMTP_PASSWORD_OLD", "is set without a password that replaces it", "set CRITICIZER_SMTP_PASSWORD, or unset both")
	p.add(m.TokenFile != "" && m.Username == "", "mail.username", "is not set, mail.token_file is", "name the account")
	p.add(m.TokenFile != "" && m.Password.IsSet(), "mail.token_file", "is set, so is CRITICIZER_SMTP_PASSWORD", "set one of them")
	p.add(m.Username == "" && m.Password.IsSet(), "mail.username", "is not set, CRITICIZER_SMTP_PASSWORD is", "set both or neither")
}

// checkEvidence reports what keeps the mail server's traces from being read.
func (m Mail) checkEvidence(p *problems) {
	p.positive("mail.settle", int64(m.Settle))
	p.oneOf("mail.on_ambiguous", m.OnAmbiguous, "hold", "resend")
	j, b := m.Journal, m.Bounces
	checkMailbox(p, "mail.journal", "CRITICIZER_JOURNAL_PASSWORD", j)
	checkMailbox(p, "mail.bounces", "CRITICIZER_BOUNCES_PASSWORD", MailJournal(b))
}

// checkMailbox looks at a mailbox that is read by IMAP; without a host there
// is none.
func checkMailbox(p *problems, name, password string, m MailJournal) {
	if m.Host == "" {
		return
	}
	p.require(name+".username", m.Username, "name the account that may read the mailbox")
	if m.TokenFile == "" {
		p.requireSecret(password, m.Password, "the password of "+name+".username")
	}
	p.add(m.TokenFile != "" && m.Password.IsSet(), name+".token_file", "is set, so is "+password, "set one of them")
	p.oneOf(name+".tls", m.TLS, "mandatory", "implicit", "none")
	p.add(m.Port < 1 || m.Port > 65535, name+".port", fmt.Sprintf("%d is no port", m.Port), "write 1 to 65535")
	p.add(m.TLS == "none" && !loopback(m.Host), name+".tls", "is none for a server on another host", "set it to mandatory or implicit")
}
