-- +goose Up

-- Besides the people who are mailed, a review may be told to a channel, which
-- has one row of the outbox too. Its recipient is the channel's own name, never
-- where it leads: that may be a secret.
alter table criticizer.deliveries
    add column channel text not null default 'mail',
    add constraint deliveries_channel_known check (channel in ('mail', 'webhook', 'swarm')),
    add constraint deliveries_channel_names_recipient check (
        (recipient = channel and channel <> 'mail') or (channel = 'mail' and recipient not in ('mail', 'webhook', 'swarm')));
