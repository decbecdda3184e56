-- Deletes the rows that were written since the transaction storetest.first, whatever
-- their triggers and foreign keys say, and sets the sequences back.
do $$
declare
    t regclass;
    s record;
begin
    set local session_replication_role = replica;
    for t in
        select oid from pg_class
        where relkind = 'r' and relnamespace::regnamespace::text !~ '^(pg_|information_schema)'
    loop
        execute format('delete from %s where xmin::text::bigint >= %s', t, current_setting('storetest.first'));
    end loop;
    for s in
        select q.oid::regclass as name, d.refobjid::regclass as of, a.attname as col
        from pg_class q
        join pg_depend d on d.classid = 'pg_class'::regclass and d.objid = q.oid and d.deptype in ('a', 'i')
        join pg_attribute a on a.attrelid = d.refobjid and a.attnum = d.refobjsubid
        where q.relkind = 'S'
    loop
        execute format('select setval(%L, coalesce(max(%I), 0) + 1, false) from %s', s.name, s.col, s.of);
    end loop;
end
$$;
