-- The tables of every region in this database, and the functions that change them: one
-- call, one transaction, one round trip.
create table weir_format (version text not null);

create table weir_members (
  region text, id text, url text not null, until timestamptz not null,
  primary key (region, id)
);

create table weir_groups (
  region text, grp int,
  owner text not null default '', url text not null default '',
  fence text not null default '', until timestamptz not null default '-infinity',
  claims bigint not null default 0, last bigint not null default 0,
  entries bigint not null default 0, dropped bigint not null default 0,
  snapshot text not null default '',
  primary key (region, grp)
);

-- `entry` counts from 0 since the group began.
create table weir_log (
  region text, grp int, entry bigint, bytes bytea not null,
  primary key (region, grp, entry)
);

create table weir_snapshots (
  region text, grp int, live boolean, place bigint, bytes bytea not null,
  primary key (region, grp, live, place)
);

create table weir_rules (
  region text primary key, revision bigint not null, bytes bytea not null
);

create function weir_claim(r text, g int, member text, at text, lease interval, nonce text)
returns table (fenced text, last_record bigint, dropped_entries bigint) language plpgsql as $$
begin
  insert into weir_groups (region, grp) values (r, g) on conflict do nothing;
  return query
    update weir_groups w set owner = member, url = at, claims = w.claims + 1,
      fence = (w.claims + 1) || '-' || nonce, until = clock_timestamp() + lease
    where w.region = r and w.grp = g
      and (w.owner in ('', member) or w.until <= clock_timestamp())
    returning w.fence, w.last, w.dropped;
end $$;

create function weir_renew(r text, g int, f text, lease interval)
returns table (holds boolean, member text, at text) language plpgsql as $$
begin
  if f <> '' then
    update weir_groups w set until = clock_timestamp() + lease
      where w.region = r and w.grp = g and w.fence = f;
  end if;
  return query
    select f <> '' and w.fence = f, w.owner, w.url from weir_groups w
      where w.region = r and w.grp = g and w.until > clock_timestamp();
end $$;

create function weir_append(r text, g int, f text, follows bigint, latest bigint, e bytea)
returns text language plpgsql as $$
declare m weir_groups;
begin
  select * into m from weir_groups where region = r and grp = g for update;
  if m.fence is distinct from f then return 'fenced'; end if;
  if m.last <> latest then
    if m.last <> follows then return m.last; end if;
    insert into weir_log values (r, g, m.entries, e);
    m.entries = m.entries + 1;
  end if;
  -- Sent again, something is written all the same, for a standby to be waited for with.
  update weir_groups set last = latest, entries = m.entries where region = r and grp = g;
  return 'ok';
end $$;

create function weir_chunk(r text, g int, f text, at bigint, chunk bytea)
returns text language plpgsql as $$
begin
  perform 1 from weir_groups where region = r and grp = g and fence = f for update;
  if not found then return 'fenced'; end if;
  if chunk is null then
    delete from weir_snapshots where region = r and grp = g and not live;
  else
    insert into weir_snapshots values (r, g, false, at, chunk) on conflict do nothing;
  end if;
  return 'ok';
end $$;

create function weir_publish(r text, g int, f text, name text, replaced bigint)
returns text language plpgsql as $$
declare m weir_groups;
begin
  select * into m from weir_groups where region = r and grp = g for update;
  if m.fence is distinct from f then return 'fenced'; end if;
  if m.snapshot = f || '/' || name then return 'ok'; end if;
  delete from weir_snapshots where region = r and grp = g and live;
  update weir_snapshots set live = true where region = r and grp = g;
  delete from weir_log where region = r and grp = g and entry < replaced;
  update weir_groups set snapshot = f || '/' || name, dropped = greatest(dropped, replaced)
    where region = r and grp = g;
  return 'ok';
end $$;
